"""How a target is searched for, or drawn: every setting of it."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from torch import Tensor

from regard.core.config import all_at_least, at_least, from_dict, override, to_dict, within
from regard.core.errors import ConfigError
from regard.core.logging import logger

ONLY_DRAWING = ("top_k", "top_p", "min_p", "seed")
"""Settings that need a temperature above 0."""


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """How a target is searched for, or drawn."""

    beams: int = 5
    """Hypotheses kept a sentence; 1 is greedy search."""
    length_penalty: float = 1.0
    """Log-probabilities are divided by length to this power; 0 = not at all."""
    max_ratio: float = 2.0
    """A target may have this many tokens a source token …"""
    max_extra: int = 20
    """… and this many more."""
    min_length: int = 0
    """Tokens a target has at least before it may end."""
    no_repeat_ngram: int = 0
    """No run of so many tokens occurs twice in a target; 0 = any may."""
    repetition_penalty: float = 1.0
    """Log-probabilities of tokens that the target already holds are multiplied by this; 1 = not."""
    consensus: int = 0
    """Hypotheses among which the one most like the others is taken, searched for or drawn; 0 = the
    likeliest is."""
    ctc_weight: float = 0.0
    """Share of what the encoder's states say by themselves in the log-probabilities that are
    searched by; 1 = the decoder is not asked. Above 0 it needs `model.ctc`."""
    temperature: float = 0.0
    """0 searches for the likeliest target; above 0 targets are drawn, the more evenly the higher,
    and 1 draws from the model's own distribution."""
    top_k: int = 0
    """Draw among this many of the likeliest tokens; 0 = all."""
    top_p: float = 1.0
    """Draw among the likeliest tokens that together have this probability; 1 = all."""
    min_p: float = 0.0
    """Draw among tokens at least this many times as probable as the likeliest; 0 = all."""
    seed: int = 0
    """What is drawn depends on it and on the sentence alone."""

    def __post_init__(self) -> None:
        at_least("beams", self.beams, 1)
        all_at_least(self, 0.0, "length_penalty", "max_ratio")
        at_least("max_extra", self.max_extra, 1)
        all_at_least(self, 0, "min_length", "no_repeat_ngram")
        within("repetition_penalty", self.repetition_penalty, low=1.0, high=100.0)
        at_least("consensus", self.consensus, 0)
        within("ctc_weight", self.ctc_weight, low=0.0, high=1.0)
        within("temperature", self.temperature, low=0.0, high=100.0)
        at_least("top_k", self.top_k, 0)
        within("top_p", self.top_p, low=0.0, high=1.0)
        within("min_p", self.min_p, low=0.0, high=1.0)
        at_least("seed", self.seed, 0)

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
