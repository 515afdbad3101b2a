"""How good a single answer is, so that a model can learn from its own answers."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from sacrebleu.metrics.bleu import BLEU

from regard.metrics.vision.captions import Rarity, caption_words


class Reward(ABC):
    """Judges one answer at a time, 0 to 1.

    Args:
        references: The right answers to every training source, for what depends on them all.
    """

    @abstractmethod
    def __init__(self, references: Sequence[Sequence[str]]) -> None: ...

    @abstractmethod
    def __call__(self, answer: str, references: Sequence[str]) -> float:
        """Tell how good an answer is beside the right ones."""


class BleuReward(Reward):
    """BLEU of one sentence, each longer run of words that is missing counted as half as likely.

    Chen and Cherry 2014, smoothing 3, as sacreBLEU computes it.
    """

    def __init__(self, references: Sequence[Sequence[str]]) -> None:
        del references
        self._bleu = BLEU(effective_order=True)

    def __call__(self, answer: str, references: Sequence[str]) -> float:
        """Tell how good an answer is beside the right ones."""
        return self._bleu.sentence_score(answer, references).score / 100


class CiderReward(Reward):
    """CIDEr-D of one caption; rare is what few training sources are answered with."""

    def __init__(self, references: Sequence[Sequence[str]]) -> None:
        self._rarity = Rarity([[caption_words(text) for text in texts] for texts in references])

    def __call__(self, answer: str, references: Sequence[str]) -> float:
        """Tell how good an answer is beside the right ones."""
        return self._rarity.compare(
            caption_words(answer), [caption_words(text) for text in references]
        )


REWARDS: dict[str, type[Reward]] = {"bleu": BleuReward, "cider": CiderReward}
