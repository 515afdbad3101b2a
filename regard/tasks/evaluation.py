"""How good a run is: every score with its signature, by length and by phenomenon."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from regard.core.errors import DataError
from regard.data.examples import Example
from regard.metrics.accuracy import accuracy
from regard.metrics.alignment import alignment_error_rate, links_from_weights, merge_to_words
from regard.metrics.grouping import Group, by_length, by_tag
from regard.metrics.lecture_bleu import lecture_bleu
from regard.metrics.result import Result
from regard.metrics.text import bleu, chrf
from regard.search.settings import SearchConfig

if TYPE_CHECKING:
    from regard.tasks.predictor import Predictor


@dataclass(frozen=True)
class Evaluation:
    """What was measured on a test set."""

    results: dict[str, Result]
    """Each score by its name."""
    by_length: list[Group] = field(default_factory=list)
    """BLEU by the number of source words."""
    by_tag: list[Group] = field(default_factory=list)
    """BLEU and exact matches by phenomenon, where the data carries tags."""
    sources: list[str] = field(default_factory=list)
    """What was given."""
    outputs: list[str] = field(default_factory=list)
    """What was answered."""
    references: list[str] = field(default_factory=list)
    """What was right."""
    confusion: dict[str, dict[str, int]] = field(default_factory=dict)
    """For labels: right label → predicted label → how often."""
    num_tokens: int = 0
    """Target tokens written."""
    seconds: float = 0.0
    """Time that answering took."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold, without the sentences."""
        return {
            "scores": {name: result.to_dict() for name, result in self.results.items()},
            "by_length": [_group(group) for group in self.by_length],
            "by_tag": [_group(group) for group in self.by_tag],
            **({"confusion": self.confusion} if self.confusion else {}),
            "num_examples": len(self.outputs),
            "seconds": round(self.seconds, 3),
            "tokens_per_second": round(self.num_tokens / self.seconds, 1) if self.seconds else 0.0,
        }


def evaluate(
    predictor: "Predictor",
    examples: Sequence[Example],
    *,
    search: SearchConfig | None = None,
    num_bootstrap: int = 0,
) -> Evaluation:
    """Translate a test set and measure the answers.

    Args:
        predictor: What answers.
        examples: What is asked, with the right answers.
        search: How to search; the recipe's way if not given.
        num_bootstrap: Samples behind each confidence interval; 0 = none.
    """
    if not examples:
        raise DataError("There is nothing to evaluate: the test set has no example.")
    started = time.perf_counter()
    found = [best[0] for best in predictor.predict([e.source for e in examples], search=search)]
    seconds = time.perf_counter() - started
    outputs = [prediction.text for prediction in found]
    references = [[example.target, *example.references] for example in examples]
    sources = [example.source for example in examples]
    results = {
        "bleu": bleu(outputs, references, num_bootstrap=num_bootstrap),
        "chrf": chrf(outputs, references, num_bootstrap=num_bootstrap),
        "accuracy": accuracy(outputs, references),
        "lecture_bleu": lecture_bleu(outputs, references),
    }
    error_rate = measure_alignment(predictor, examples)
    if error_rate is not None:
        results["aer"] = error_rate
    tags = [example.tags for example in examples]
    return Evaluation(
        results=results,
        by_length=by_length(sources, outputs, references),
        by_tag=by_tag(tags, outputs, references) if any(tags) else [],
        sources=sources,
        outputs=outputs,
        references=[example.target for example in examples],
        num_tokens=sum(len(prediction.tokens) for prediction in found),
        seconds=seconds,
    )


def measure_alignment(predictor: "Predictor", examples: Sequence[Example]) -> Result | None:
    """Measure the attention against gold alignments, where there are both.

    Each word of the right target is linked to the source word that the model looks at most
    while it writes it.
    """
    aligned = [example for example in examples if example.alignment is not None]
    if not aligned:
        return None
    maps = predictor.attend(aligned)
    if not maps[0].weights.shape[0]:
        return None
    predicted = []
    for example, found in zip(aligned, maps, strict=True):
        source_words = predictor.source.tokenizer.word_index(example.source)
        target_words = predictor.target.tokenizer.word_index(example.target)
        # The end tokens on both sides belong to no word.
        weights = found.mean()[: len(target_words), : len(source_words)]
        words = merge_to_words(weights.numpy(), target_words, source_words)
        predicted.append(links_from_weights(words))
    return alignment_error_rate(predicted, [set(example.alignment or ()) for example in aligned])


def _group(group: Group) -> dict[str, Any]:
    values = {name: round(result.value, 4) for name, result in group.results.items()}
    return {"name": group.name, "count": group.count, **values}
