"""Images, or videos, with the images to be drawn for them, as batches."""

from torch import Tensor

from regard.core.errors import DataError
from regard.data.batch import Batch
from regard.data.batching import BatchConfig, Batches, Field, Items, Rows
from regard.data.labels import LabelledBatches


class _LargeBatches(Batches):
    """Batches of two at least, as a batch norm cannot learn from one image of one cell."""

    def plan(self, number: int) -> list[Rows]:
        """Return which examples each batch of an epoch holds; a single last one waits."""
        planned = super().plan(number)
        # Where all are single, somebody wants them so.
        return [rows for rows in planned if len(rows) > 1] or planned


class ImagePairs(LabelledBatches):
    """Read sources with their targets as batches, in the order that `Batches` gives them."""

    def __init__(
        self,
        sources: Items,
        targets: Items,
        config: BatchConfig,
        *,
        fields: tuple[Field, Field],
        seed: int = 0,
        is_shuffled: bool = False,
        is_pinned: bool = False,
    ) -> None:
        if is_shuffled and len(sources) < 2:
            raise DataError(
                f"There must be two images to learn from, but there are {len(sources)}."
            )
        kind = _LargeBatches if is_shuffled else Batches
        self._pairs = kind(
            sources,
            targets,
            config,
            fields=fields,
            seed=seed,
            is_shuffled=is_shuffled,
            is_pinned=is_pinned,
        )

    @staticmethod
    def _labels(batch: Batch) -> Tensor:
        return batch.target
