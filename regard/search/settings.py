"""Settings of search and sampling."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Literal, Self

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

SAMPLING_ONLY = ("top_k", "top_p", "min_p", "typical_p", "seed")
"""Settings that need a temperature above 0."""

BEAM_ONLY = ("length_penalty_kind", "stopping", "groups")
"""Settings of beam search, which sampling does not use."""


@dataclass(frozen=True, kw_only=True)
class SearchConfig(Config):
    """Settings of search and sampling."""

    beams: Annotated[int, Within(1, 1000)] = 5
    """Number of beams; 1 is greedy search."""
    length_penalty: Annotated[float, Within(0.0, 10.0)] = 1.0
    """Length penalty: log-probabilities are divided by length to this power; 0 = none."""
    length_penalty_kind: Literal["length", "gnmt"] = "length"
    """Base of the power: the length in tokens, or (5 + length) / 6, which penalises short targets
    less (Wu et al. 2016)."""
    coverage_penalty: Annotated[float, Within(0.0, 100.0)] = 0.0
    """Weight of the coverage penalty, by which finished hypotheses are ranked: the sum over source
    positions of log min(1, received attention); 0 = none. Needs cross-attention."""
    stopping: Literal["heuristic", "bound", "none"] = "heuristic"
    """End of beam search: 'heuristic' = as many hypotheses have ended as there are beams and none
    is better at its current length; 'bound' = none can become better; 'none' = maximum length."""
    groups: Annotated[int, Within(1, 1000)] = 1
    """Number of groups of beams, which are penalised for the tokens of the groups before them; it
    must divide the number of beams."""
    diversity: Annotated[float, Within(0.0, 100.0)] = 0.5
    """Penalty of a token per beam of the groups before that has chosen it in the same step."""
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
    consensus_metric: Literal["ngrams", "chrf", "bleu"] = "ngrams"
    """Similarity for `consensus`: shared n-grams of tokens, chrF or sentence BLEU of texts."""
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
    typical_p: UnitInterval = 1.0
    """Probability of the smallest set of tokens to sample from whose information is nearest to the
    entropy; 1 = all."""
    precision: Literal["fp32", "bf16", "int8", "auto"] = "fp32"
    """Precision of matrix products in search; 'auto' = the fastest one whose BLEU on the validation
    data is at most 0.1 below that of fp32, measured once and stored in the run folder."""
    seed: NonNegative = 0
    """Seed of sampling. Samples depend on the seed and the sentence only."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.beams % self.groups:
            raise ConfigError(f"`groups` must divide `beams` ({self.beams}), but is {self.groups}.")

        if self.coverage_penalty and self.consensus:
            raise ConfigError(
                "`coverage_penalty` must be 0 where `consensus` is above 0, since each is a "
                f"ranking of its own, but is {self.coverage_penalty:g}."
            )

    @property
    def is_sampling(self) -> bool:
        """Whether targets are sampled rather than searched for."""
        return self.temperature > 0

    def with_beams(self, num: int) -> Self:
        """Return the settings with at least `num` beams, a multiple of the number of groups."""
        return replace(self, beams=max(self.beams, -(-num // self.groups) * self.groups))

    def greedy(self) -> Self:
        """Return the settings with greedy search."""
        return replace(
            self, beams=1, groups=1, consensus=0, coverage_penalty=0.0, stopping="heuristic"
        )

    def max_lengths(self, source_mask: Tensor) -> Tensor:
        """Return the maximum number of target tokens, (B,), of sources with the mask (B, S)."""
        lengths = source_mask.sum(1).cpu()
        return (lengths * self.max_ratio).long() + self.max_extra  # (B,)

    def warn_about_unused(self, *, has_beam_option: bool = False) -> None:
        """Log a warning for each setting that has no effect.

        Args:
            has_beam_option: Whether `beams` was set by an option, not by the recipe.
        """
        others = BEAM_ONLY if self.is_sampling else SAMPLING_ONLY
        reasons = dict.fromkeys(others, "temperature")
        if not self.consensus:
            reasons["consensus_metric"] = "consensus"
        if self.groups == 1:
            reasons["diversity"] = "groups"
        if self.beams == 1 and not self.is_sampling:
            reasons |= dict.fromkeys(("coverage_penalty", "stopping"), "beams")
        defaults = {field.name: field.default for field in fields(self)}
        unused = {
            name: reason
            for name, reason in reasons.items()
            if getattr(self, name) != defaults[name]
        }
        if self.is_sampling and has_beam_option:
            unused["beams"] = "temperature"
        for name, reason in unused.items():
            logger.warning(
                "`search.%s` is %s, but has no effect: `search.%s` is %s.",
                name,
                getattr(self, name),
                reason,
                getattr(self, reason),
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
