"""Language models of unigram and bigram counts."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

PRIOR = 5.0
"""Weight of the unigram distribution in bigram probabilities, in counts."""

MAX_SAMPLED = 30
"""Maximum number of tokens of a sample."""


@dataclass(frozen=True)
class Counts:
    """Unigram and bigram counts of training sentences."""

    words: Counter[int]
    pairs: Counter[tuple[int, int]]
    firsts: Counter[int]
    vocab_size: int

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]], vocab_size: int) -> "Counts":
        """Count the tokens after the start token, and the pairs of neighbours."""
        pairs = [pair for row in rows for pair in zip(row, row[1:], strict=False)]
        return cls(
            Counter(second for _, second in pairs),
            Counter(pairs),
            Counter(first for first, _ in pairs),
            vocab_size,
        )

    def unigram(self, token: int) -> float:
        """Return p(y) with one added to every count."""
        return (self.words[token] + 1) / (self.words.total() + self.vocab_size)

    def bigram(self, token: int, previous: int) -> float:
        """Return p(y_t | y_{t-1}), with the unigram distribution as prior."""
        count = self.pairs[previous, token] + PRIOR * self.unigram(token)
        return count / (self.firsts[previous] + PRIOR)

    def sample(self, *, start: int, end: int, is_bigram: bool, random: Random) -> list[int]:
        """Sample tokens until the end token, at most `MAX_SAMPLED`."""
        tokens = [start]
        while tokens[-1] != end and len(tokens) <= MAX_SAMPLED:
            counts = self.words
            if is_bigram:
                counts = Counter(
                    {second: n for (first, second), n in self.pairs.items() if first == tokens[-1]}
                )
            tokens += random.choices(list(counts), list(counts.values()))
        return tokens[1:]
