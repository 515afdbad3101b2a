"""Where runs part: the sentences on which one is right and another is not."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.data.example import Example
from regard.metrics.text.bleu import chrf


@dataclass(frozen=True)
class Disagreement:
    """One sentence and what every run made of it."""

    source: str
    """What was given."""
    reference: str
    """What was right."""
    outputs: tuple[str, ...]
    """What each run answered."""
    values: tuple[float, ...]
    """The chrF of each answer."""

    @property
    def spread(self) -> float:
        """How far the best answer is from the worst."""
        return max(self.values) - min(self.values)


def find_disagreements(
    examples: Sequence[Example], outputs: Sequence[Sequence[str]], *, num: int = 10
) -> list[Disagreement]:
    """Return the sentences with the greatest spread of chrF, greatest first; equal answers never.

    Args:
        examples: The test set.
        outputs: For each run its answers.
        num: At most how many.
    """
    found = []
    for example, answers in zip(examples, zip(*outputs, strict=True), strict=True):
        if len(set(answers)) == 1:
            continue
        references = [[example.target, *example.references]]
        values = tuple(chrf([answer], references).value for answer in answers)
        found.append(Disagreement(example.source, example.target, answers, values))
    return sorted(found, key=lambda one: -one.spread)[:num]
