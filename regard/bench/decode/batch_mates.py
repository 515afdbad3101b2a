"""Check that the output of a sentence does not depend on the other sentences of its batch."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from regard.bench.decode.contender import DecodeContender
from regard.tasks.prediction import Prediction

MAX_MARGIN = 1e-4
"""Margin up to which rounding may select another output."""


@dataclass(frozen=True)
class Changed:
    """A sentence with another output in a batch than alone."""

    source: str
    """The sentence."""
    batched: str
    """Its output in a batch."""
    alone: str
    """Its output alone."""
    score_margin: float
    """Difference of the scores of the two outputs: log-probability / length ** penalty."""
    token_margin: float
    """Difference of the log-probabilities of the next token at the first differing position."""

    @property
    def margin(self) -> float:
        """The smaller of the two margins."""
        return min(self.score_margin, self.token_margin)


@dataclass(frozen=True, kw_only=True)
class BatchMates:
    """Sentences whose outputs changed, for one contender and number of beams."""

    contender: str
    """The contender."""
    precision: str
    """Its precision."""
    beams: int
    """Number of beams."""
    sentences: int
    """Number of sentences that were decoded both in batches and alone."""
    max_margin: float = 0.0
    """Largest margin of a changed sentence."""
    num_beyond: int = 0
    """Number of changed sentences whose margin exceeds `MAX_MARGIN`."""
    changed: list[dict[str, object]] = field(default_factory=list)
    """Changed sentences with their margins."""


def find_changed(
    contender: DecodeContender, sources: Sequence[str], *, beams: int, length_penalty: float
) -> list[Changed]:
    """Return the sentences whose outputs in batches and alone differ.

    Args:
        contender: The contender.
        sources: The sentences.
        beams: Number of beams.
        length_penalty: Exponent of the length in scores.
    """
    batched = contender.decode(sources, beams)
    alone = [contender.decode([source], beams)[0] for source in sources]
    return [
        Changed(source, one.text, other.text, *_margins(one, other, length_penalty))
        for source, one, other in zip(sources, batched, alone, strict=True)
        if one.tokens != other.tokens
    ]


def _margins(one: Prediction, other: Prediction, penalty: float) -> tuple[float, float]:
    """Return the differences of the scores, and of the log-probabilities of the next token."""
    scores = [each.log_prob / max(1, len(each.tokens)) ** penalty for each in (one, other)]
    same = takewhile(lambda pair: pair[0] == pair[1], zip(one.tokens, other.tokens, strict=False))
    first = len(list(same))
    if first >= min(len(one.token_log_probs), len(other.token_log_probs)):
        return abs(scores[0] - scores[1]), float("inf")
    steps = abs(one.token_log_probs[first] - other.token_log_probs[first])
    return abs(scores[0] - scores[1]), steps
