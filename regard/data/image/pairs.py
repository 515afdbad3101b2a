"""Batches of images or videos with target images."""

from torch import Tensor

from regard.core.errors import DataError
from regard.data.batching import Items, Rows
from regard.data.labels import LabelledBatches


class ImagePairs(LabelledBatches):
    """Batches of sources with target images; in training, of at least two examples.

    Batch normalisation of a single image with one cell is undefined.
    """

    def __post_init__(self) -> None:
        if self.is_shuffled and len(self.sources) < 2:
            raise DataError(
                f"There must be two images to learn from, but there are {len(self.sources)}."
            )
        super().__post_init__()

    def plan(self, number: int) -> list[Rows]:
        """Return the indexes of each batch of an epoch; in training, skip batches of one."""
        planned = super().plan(number)
        # If all batches have one example, the settings ask for it.
        large = [rows for rows in planned if len(rows) > 1] if self.is_shuffled else []
        return large or planned

    def stack_targets(self, targets: Items) -> Tensor:
        """Return images as one tensor, (B, C, Y, X)."""
        stacked: Tensor = self.fields[1].stack(targets)[0]
        return stacked
