"""Output of predictions, of which an interruption leaves whole lines only."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout
from typing import Protocol

from regard.runs.prediction.output import PartialOutput
from regard.runs.prediction.predict import SourcePredictions
from regard.training.signals import Interrupts


class PrintResults(Protocol):
    """Prints predictions to standard output; `first` is the number of the first source."""

    def __call__(self, results: Iterable[SourcePredictions], *, first: int) -> None:
        """Print predictions."""


def print_predictions(
    groups: Iterable[list[SourcePredictions]], print_results: PrintResults
) -> None:
    """Print predictions to standard output.

    Args:
        groups: The predictions.
        print_results: Prints them.
    """
    number = 0
    with Interrupts() as interrupts:
        for group in groups:
            for result in group:
                number += 1
                with interrupts.deferred():
                    print_results([result], first=number)


def write_predictions(
    predict_groups: Callable[..., Iterator[list[SourcePredictions]]],
    sources: Iterable[str],
    *,
    output: PartialOutput,
    print_results: PrintResults,
) -> None:
    """Write predictions to a file that is resumed after an interruption.

    Args:
        predict_groups: Predicts groups of sources, as `PredictionPipeline.predict_groups`.
        sources: All sources.
        output: The file.
        print_results: Prints predictions.
    """
    with Interrupts() as interrupts, output:
        remaining = output.skip(sources)
        for group in predict_groups(remaining, num_before=output.num_done):
            with interrupts.deferred(), redirect_stdout(output.file):
                print_results(group, first=output.num_done + 1)
                output.add(result.source for result in group)
        with interrupts.deferred():
            output.finish()
