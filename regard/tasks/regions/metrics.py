"""How good found regions are: what they share with the right ones, and how many are right."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from regard.core.errors import DataError
from regard.data.example import Example
from regard.metrics.grouping import by_tag
from regard.metrics.result import Metric
from regard.tasks.generation.evaluation import Evaluation, as_text
from regard.tasks.prediction import Prediction
from regard.training.loop import Validation


def evaluate_regions(
    predict: Callable[[list[Any]], list[list[Prediction]]],
    examples: Sequence[Example],
    *,
    measures: Mapping[str, Metric],
    num_bootstrap: int = 0,
) -> Evaluation:
    """Find the regions of a test set and measure them.

    Args:
        predict: What answers.
        examples: What is asked, with the right regions as text.
        measures: What is measured, by name; also by tag.
        num_bootstrap: Samples behind each confidence interval; 0 = none.
    """
    if not examples:
        raise DataError("There is nothing to evaluate: the test set has no example.")
    started = time.perf_counter()
    outputs = [best[0].text for best in predict([example.source for example in examples])]
    seconds = time.perf_counter() - started
    references = [[example.target, *example.references] for example in examples]
    tags = [example.tags for example in examples]
    return Evaluation(
        results={
            name: measure(outputs, references, num_bootstrap=num_bootstrap)
            for name, measure in measures.items()
        },
        by_tag=by_tag(tags, outputs, references, measures=measures) if any(tags) else [],
        sources=[as_text(example.source) for example in examples],
        outputs=outputs,
        references=[example.target for example in examples],
        num_tokens=len(outputs),
        seconds=seconds,
    )


def validate_regions(
    outputs: Sequence[str],
    examples: Sequence[Example],
    *,
    measures: Mapping[str, Metric],
    loss: float,
    metric: str,
) -> Validation:
    """Measure regions while learning.

    Args:
        outputs: What was found.
        examples: What is right.
        measures: What is measured, by name.
        loss: What it costs.
        metric: Which of them decides.
    """
    references = [[example.target] for example in examples]
    numbers = {name: measure(outputs, references).value for name, measure in measures.items()}
    value = -loss if metric == "loss" else numbers[metric]
    return Validation(value=value, numbers={"loss": loss, **numbers})
