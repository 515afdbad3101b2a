"""How good a classifier is: accuracy and F1, by length, and which label is taken for which."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.core.errors import DataError
from regard.data.datasets.labelled import split_source
from regard.data.example import Example
from regard.metrics.classification import confusion, label_accuracy, macro_f1, top_accuracy
from regard.metrics.grouping import by_length, by_tag
from regard.metrics.text.accuracy import accuracy
from regard.tasks.generation.evaluation import Evaluation

if TYPE_CHECKING:
    from regard.tasks.classification.task import ClassificationTask

MOST_CANDIDATES = 5
"""Labels among which the right one may be for `accuracy@5`, where there are more than these."""


def evaluate_labels(
    task: "ClassificationTask", examples: Sequence[Example], *, num_bootstrap: int = 0
) -> Evaluation:
    """Label a test set and measure the labels.

    Args:
        task: What answers.
        examples: What is asked, with the right labels.
        num_bootstrap: Samples behind the interval of F1; that of the accuracy needs none.
    """
    if not examples:
        raise DataError("There is nothing to evaluate: the test set has no example.")
    right = [task.labels.write(task.labels.read(example.target)) for example in examples]
    started = time.perf_counter()
    found = task.predict([example.source for example in examples], num_best=MOST_CANDIDATES)
    seconds = time.perf_counter() - started
    candidates = [[prediction.text for prediction in best] for best in found]
    outputs = [best[0] for best in candidates]
    sources = ["\t".join(split_source(example.source)) for example in examples]
    references = [[label] for label in right]
    tags = [example.tags for example in examples]
    measures = {"accuracy": accuracy}
    results = {
        "accuracy": label_accuracy(outputs, right),
        "macro_f1": macro_f1(outputs, right, num_bootstrap=num_bootstrap),
    }
    if len(task.labels.names) > MOST_CANDIDATES:
        results[f"accuracy@{MOST_CANDIDATES}"] = top_accuracy(candidates, right)
    has_text = task.source.modality == "text"
    return Evaluation(
        results=results,
        # Where a source is an image, it has no length.
        by_length=by_length(sources, outputs, references, measures=measures) if has_text else [],
        by_tag=by_tag(tags, outputs, references, measures=measures) if any(tags) else [],
        sources=sources,
        outputs=outputs,
        references=right,
        confusion=confusion(outputs, right),
        num_tokens=len(outputs),
        seconds=seconds,
    )
