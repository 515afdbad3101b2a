"""Most likely tokens at each position of predictions, by forced decoding."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import torch

from regard.core.config import at_least
from regard.core.errors import ConfigError
from regard.core.progress import track
from regard.data.text.tokenizers import Tokenizer
from regard.search.alternatives import find_alternatives
from regard.search.ctc import JointScorer
from regard.search.scorer import Scorer
from regard.search.settings import SearchConfig
from regard.tasks.base import Task
from regard.tasks.prediction import Prediction


@runtime_checkable
class HasScorers(Protocol):
    """A task that generates tokens with a scorer."""

    @property
    def output_tokenizer(self) -> Tokenizer:
        """The tokeniser of predictions."""

    @property
    def start_token(self) -> int:
        """The token that search starts with."""

    def scorers(
        self, sources: Sequence[Any], search: SearchConfig
    ) -> Iterator[tuple[Sequence[int], Scorer]]:
        """Yield the indices of the sources of each batch, and the scorer of their search.

        Args:
            sources: The raw sources, none of them empty.
            search: The search settings.
        """


def add_alternatives(
    task: Task[Any],
    sources: Sequence[Any],
    predictions: Sequence[Sequence[Prediction]],
    *,
    num: int,
    search: SearchConfig,
) -> list[list[Prediction]]:
    """Return predictions with the most likely tokens at each position.

    Log-probabilities are those of predictions: of CTC if it is searched alone, otherwise of the
    decoder. Predictions without tokens, such as those of empty sources, have no alternatives.

    Args:
        task: A task that generates tokens.
        sources: The raw sources.
        predictions: Predictions of each source, as `predict` returns them.
        num: Number of tokens per position.
        search: The search settings of the predictions.
    """
    at_least("alternatives", num, 1)
    if not isinstance(task, HasScorers):
        raise ConfigError(
            "`alternatives` are for models that generate tokens, but the task of this run is "
            f"'{task.recipe.task}'. Leave them out."
        )
    changed = [list(several) for several in predictions]
    rows = [row for row, several in enumerate(predictions) if any(map(_token_ids, several))]
    batches = task.scorers([sources[row] for row in rows], search)
    with torch.inference_mode():
        for batch, scorer in track(batches, "Finding alternatives", total=len(rows), size=_num):
            groups = [changed[rows[row]] for row in batch]
            scorer = scorer.decoder if isinstance(scorer, JointScorer) else scorer
            ids = [[*map(_token_ids, group)] for group in groups]
            found = find_alternatives(scorer, ids, start=task.start_token, num=num)
            for group, alternatives in zip(groups, found, strict=True):
                group[:] = [
                    one.with_alternatives(best, task.output_tokenizer)
                    for one, best in zip(group, alternatives, strict=True)
                ]
    return changed


def _token_ids(prediction: Prediction) -> tuple[int, ...]:
    return prediction.token_ids


def _num(batch: tuple[Sequence[int], Scorer]) -> int:
    return len(batch[0])
