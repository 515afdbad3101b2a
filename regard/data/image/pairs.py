"""Images, or videos, with the images to be drawn for them, as batches."""

from torch import Tensor

from regard.core.errors import DataError
from regard.data.batching import Items, Rows
from regard.data.labels import LabelledBatches


class ImagePairs(LabelledBatches):
    """Read sources with their targets as batches, in training of two at least.

    A batch norm cannot learn from one image of one cell.
    """

    def __post_init__(self) -> None:
        if self.is_shuffled and len(self.sources) < 2:
            raise DataError(
                f"There must be two images to learn from, but there are {len(self.sources)}."
            )
        super().__post_init__()

    def plan(self, number: int) -> list[Rows]:
        """Return which examples each batch of an epoch holds; a single last one waits."""
        planned = super().plan(number)
        # Where all are single, somebody wants them so.
        large = [rows for rows in planned if len(rows) > 1] if self.is_shuffled else []
        return large or planned

    def stack_targets(self, targets: Items) -> Tensor:
        """Return images as one tensor, (B, C, Y, X)."""
        stacked: Tensor = self.fields[1].stack(targets)[0]
        return stacked
