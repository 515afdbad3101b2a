"""How a target is searched for, or drawn: every setting of it."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated

from torch import Tensor

from regard.core.config import (
    Config,
    NonNegative,
    NonNegativeFloat,
    Positive,
    UnitInterval,
    Within,
    from_dict,
    override,
    to_dict,
)
from regard.core.errors import ConfigError
from regard.core.logging import logger

ONLY_DRAWING = ("top_k", "top_p", "min_p", "seed")
"""Settings that need a temperature above 0."""


@dataclass(frozen=True, kw_only=True)
class SearchConfig(Config):
    """How a target is searched for, or drawn."""

    beams: Positive = 5
    """Hypotheses kept a sentence; 1 is greedy search."""
    length_penalty: NonNegativeFloat = 1.0
    """Log-probabilities are divided by length to this power; 0 = not at all."""
    max_ratio: NonNegativeFloat = 2.0
    """A target may have this many tokens a source token …"""
    max_extra: Positive = 20
    """… and this many more."""
    min_length: NonNegative = 0
    """Tokens a target has at least before it may end."""
    no_repeat_ngram: NonNegative = 0
    """No run of so many tokens occurs twice in a target; 0 = any may."""
    repetition_penalty: Annotated[float, Within(1.0, 100.0)] = 1.0
    """Log-probabilities of tokens that the target already holds are multiplied by this; 1 = not."""
    consensus: NonNegative = 0
    """Hypotheses among which the one most like the others is taken, searched for or drawn; 0 = the
    likeliest is."""
    ctc_weight: UnitInterval = 0.0
    """Share of what the encoder's states say by themselves in the log-probabilities that are
    searched by; 1 = the decoder is not asked. Above 0 it needs `model.ctc`."""
    temperature: Annotated[float, Within(0.0, 100.0)] = 0.0
    """0 searches for the likeliest target; above 0 targets are drawn, the more evenly the higher,
    and 1 draws from the model's own distribution."""
    top_k: NonNegative = 0
    """Draw among this many of the likeliest tokens; 0 = all."""
    top_p: UnitInterval = 1.0
    """Draw among the likeliest tokens that together have this probability; 1 = all."""
    min_p: UnitInterval = 0.0
    """Draw among tokens at least this many times as probable as the likeliest; 0 = all."""
    seed: NonNegative = 0
    """What is drawn depends on it and on the sentence alone."""

    @property
    def is_drawn(self) -> bool:
        """Whether targets are drawn rather than searched for."""
        return self.temperature > 0

    def max_lengths(self, source_mask: Tensor) -> Tensor:
        """Return the most target tokens of each sentence, (B,), by its own source (B, S)."""
        lengths = source_mask.sum(1).cpu()
        return (lengths * self.max_ratio).long() + self.max_extra  # (B,)

    def warn_of_idle(self, *, is_beam_asked: bool = False) -> None:
        """Name the settings that change nothing beside the others.

        Args:
            is_beam_asked: Whether a person asked for beams, rather than the recipe.
        """
        defaults = {field.name: field.default for field in fields(self)}
        if self.is_drawn:
            idle = ["beams"] if is_beam_asked else []
        else:
            idle = [name for name in ONLY_DRAWING if getattr(self, name) != defaults[name]]
        for name in idle:
            logger.warning(
                "`search.%s` is %s, but has no effect: `search.temperature` is %s.",
                name,
                getattr(self, name),
                self.temperature,
            )


def change_search(search: SearchConfig, words: Sequence[str]) -> SearchConfig:
    """Change settings by words such as `search.temperature=0.8`; no other words are allowed."""
    for word in words:
        if not word.startswith("search."):
            allowed = ", ".join(f"'search.{field.name}'" for field in fields(search))
            raise ConfigError(
                f"`{word.partition('=')[0]}` cannot be changed once a model is trained. "
                f"How it searches can: {allowed}."
            )
    changed = override({"search": to_dict(search)}, words)
    return from_dict(type(search), changed["search"], "search")
