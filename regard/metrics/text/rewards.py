"""Sentence-level rewards for reinforcement learning: BLEU and CIDEr-D."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from regard.metrics.vision.captions import CiderScorer, caption_words


class Reward(ABC):
    """Reward of one generated text, 0 to 1.

    Args:
        references: References of all training examples, for statistics such as n-gram rarity.
    """

    @abstractmethod
    def __init__(self, references: Sequence[Sequence[str]]) -> None: ...

    @abstractmethod
    def __call__(self, hypothesis: str, references: Sequence[str]) -> float:
        """Return the reward of a hypothesis given its references."""


class BleuReward(Reward):
    """Sentence BLEU with smoothing 3 of Chen and Cherry 2014, as sacreBLEU computes it."""

    def __init__(self, references: Sequence[Sequence[str]]) -> None:
        from sacrebleu.metrics.bleu import BLEU

        del references
        self._bleu = BLEU(effective_order=True)

    def __call__(self, hypothesis: str, references: Sequence[str]) -> float:
        """Return the reward of a hypothesis given its references."""
        return self._bleu.sentence_score(hypothesis, references).score / 100


class CiderReward(Reward):
    """CIDEr-D of one caption, with document frequencies of the training references."""

    def __init__(self, references: Sequence[Sequence[str]]) -> None:
        words = [[caption_words(text) for text in texts] for texts in references]
        self._scorer = CiderScorer(words)

    def __call__(self, hypothesis: str, references: Sequence[str]) -> float:
        """Return the reward of a hypothesis given its references."""
        words = [caption_words(text) for text in references]
        return self._scorer.score(caption_words(hypothesis), words)


REWARDS: dict[str, type[Reward]] = {"bleu": BleuReward, "cider": CiderReward}
