"""Settings of search and sampling."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated

from torch import Tensor

from regard.core.config import (
    Config,
    NonNegative,
    UnitInterval,
    Within,
    from_dict,
    to_dict,
)
from regard.core.errors import ConfigError
from regard.core.logging import logger
from regard.core.overrides import override
from regard.core.tables import did_you_mean

SAMPLING_ONLY = ("top_k", "top_p", "min_p", "seed")
"""Settings that need a temperature above 0."""


@dataclass(frozen=True, kw_only=True)
class SearchConfig(Config):
    """Settings of search and sampling."""

    beams: Annotated[int, Within(1, 1000)] = 5
    """Number of beams; 1 is greedy search."""
    length_penalty: Annotated[float, Within(0.0, 10.0)] = 1.0
    """Length penalty: log-probabilities are divided by length to this power; 0 = none."""
    max_ratio: Annotated[float, Within(0.0, 100.0)] = 2.0
    """Maximum number of target tokens per source token …"""
    max_extra: Annotated[int, Within(1, 10_000)] = 20
    """… plus this number of tokens."""
    min_length: Annotated[int, Within(0, 10_000)] = 0
    """Minimum number of target tokens before the end token."""
    no_repeat_ngram: NonNegative = 0
    """Order of n-grams that must not occur twice in a target; 0 = no restriction."""
    repetition_penalty: Annotated[float, Within(1.0, 100.0)] = 1.0
    """Factor of the log-probabilities of tokens that are already in the target; 1 = no penalty."""
    consensus: Annotated[int, Within(0, 1000)] = 0
    """Number of hypotheses for minimum Bayes risk decoding, which selects the one most similar to
    the others; 0 = select the most likely one."""
    ctc_weight: UnitInterval = 0.0
    """Weight of CTC in the search scores; 1 = the decoder is not used. Above 0 it needs
    `model.ctc`."""
    temperature: Annotated[float, Within(0.0, 100.0)] = 0.0
    """Sampling temperature; 0 = search for the most likely target, 1 = sample from the distribution
    of the model."""
    top_k: NonNegative = 0
    """Number of most likely tokens to sample from; 0 = all."""
    top_p: UnitInterval = 1.0
    """Probability of the smallest set of most likely tokens to sample from; 1 = all."""
    min_p: UnitInterval = 0.0
    """Minimum probability of tokens to sample from, relative to the most likely token; 0 = all."""
    seed: NonNegative = 0
    """Seed of sampling. Samples depend on the seed and the sentence only."""

    @property
    def is_sampling(self) -> bool:
        """Whether targets are sampled rather than searched for."""
        return self.temperature > 0

    def max_lengths(self, source_mask: Tensor) -> Tensor:
        """Return the maximum number of target tokens, (B,), of sources with the mask (B, S)."""
        lengths = source_mask.sum(1).cpu()
        return (lengths * self.max_ratio).long() + self.max_extra  # (B,)

    def warn_about_unused(self, *, has_beam_option: bool = False) -> None:
        """Log a warning for each setting that has no effect.

        Args:
            has_beam_option: Whether `beams` was set by an option, not by the recipe.
        """
        defaults = {field.name: field.default for field in fields(self)}
        if self.is_sampling:
            unused = ["beams"] if has_beam_option else []
        else:
            unused = [name for name in SAMPLING_ONLY if getattr(self, name) != defaults[name]]
        for name in unused:
            logger.warning(
                "`search.%s` is %s, but has no effect: `search.temperature` is %s.",
                name,
                getattr(self, name),
                self.temperature,
            )


def override_search(search: SearchConfig, overrides: Sequence[str]) -> SearchConfig:
    """Apply overrides such as `search.temperature=0.8`. Raise `ConfigError` for other settings."""
    for item in overrides:
        if not item.startswith("search."):
            key, names = (
                item.partition("=")[0],
                [f"search.{field.name}" for field in fields(search)],
            )
            raise ConfigError(
                f"`{key}` cannot be changed once a model is trained.{did_you_mean(key, names)} "
                f"Settings of search can: {', '.join(map(repr, names))}."
            )
    changed = override({"search": to_dict(search)}, overrides)
    return from_dict(type(search), changed["search"], "search")
