"""Answers to what can be read; what cannot be read is counted, and has none."""

from collections.abc import Callable, Sequence

from regard.core.errors import DataError
from regard.data.example import Example
from regard.tasks.prediction import Prediction
from regard.tasks.reading import drop_unreadable
from regard.tasks.recipe import BaseDataConfig


def answer_readable(
    answer: Callable[[Sequence[str]], list[list[Prediction]]],
    sources: Sequence[str],
    *,
    config: BaseDataConfig,
) -> list[list[Prediction]]:
    """Answer sources in the order given, those without an answer whose image cannot be read.

    How many these are is said as in training. Where nothing else is asked, it is an error.

    Args:
        answer: What answers sources that can all be read.
        sources: What is asked.
        config: How sources are read.
    """
    try:
        return answer(sources)
    except DataError:
        if len(sources) == 1:
            raise
        # An empty line asks nothing, so that nothing of it could be bad.
        asked = [Example(source) for source in sources if source.strip()]
        kept = drop_unreadable(asked, config)
        if len(kept) == len(asked):
            raise
    bad = {example.source for example in asked} - {example.source for example in kept}
    found = iter(answer([source for source in sources if source not in bad]))
    return [[] if source in bad else next(found) for source in sources]
