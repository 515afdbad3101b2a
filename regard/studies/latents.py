"""Decoding of sampled or interpolated latents to lines of text or a sheet of images."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.core.errors import ConfigError
from regard.plots.figure import SUFFIXES, check_path, save
from regard.plots.grid import COLUMNS, Tile, sheet
from regard.plots.inputs import check_image, resize_image
from regard.tasks.base import Autoencodes, GeneratesImages, Task
from regard.tasks.latents import check_autoencoder, interpolate, sample_latents
from regard.tasks.prediction import to_image
from regard.tasks.search import override_task_search

MAX_IMAGES = 500
"""Maximum number of images on a sheet."""

MAX_COLUMNS = 12
"""Maximum number of interpolated images per row."""


@dataclass(frozen=True)
class LatentDecoder:
    """Decoder of latents to texts, or to images that are saved on a sheet."""

    task: Task[Any]
    """An autoencoder."""
    overrides: Sequence[str] = ()
    """Overrides of the search for texts, such as `search.temperature=0.8`."""
    path: Path | None = None
    """File of the texts or of the sheet of images."""

    @property
    def text_file(self) -> Path | None:
        """The file of the texts, which the caller writes; None for images or without a file."""
        return None if isinstance(self.task, GeneratesImages) else self.path

    def sample(self, num: int, *, seed: int = 0, name: str) -> list[str]:
        """Decode samples of the prior, and return texts or the path of a sheet.

        Args:
            num: Number of samples.
            seed: Random seed.
            name: Name of the model in the sheet's title.
        """
        latents = sample_latents(self.task, num, seed=seed)
        self._check_sheet(num)
        return self._decode(latents, Path("samples.svg"), title=f"Samples of {name}")

    def interpolate(self, first: str, last: str, *, num: int) -> list[str]:
        """Decode latents between two sources, and return texts or the path of a sheet.

        Args:
            first: A text or an image file.
            last: Another one.
            num: Number of latents, both ends included.
        """
        if not first.strip() or not last.strip():
            raise ConfigError("Both ends must have at least one word, but one is empty.")
        check_autoencoder(self.task)
        self._check_sheet(num)
        assert isinstance(self.task, Autoencodes)
        ends = self.task.encode([first, last])
        return self._decode(
            interpolate(ends[0], ends[1], num),
            Path("between.svg"),
            title=f"From {first} to {last}",
            columns=min(num, MAX_COLUMNS),
        )

    def _check_sheet(self, num: int) -> None:
        """Raise a `ConfigError` if the requested sheet cannot be saved."""
        if isinstance(self.task, GeneratesImages):
            if self.path is not None:
                check_path(self.path, "--out")
            if num > MAX_IMAGES:
                raise ConfigError(
                    f"A sheet holds at most {MAX_IMAGES:,} images, but {num:,} are requested. "
                    "Request fewer."
                )
        elif self.path is not None and self.path.suffix.lower() in SUFFIXES:
            raise ConfigError(
                "`--out` must be a text file, since the latents of this run are those of texts, "
                f"but is '{self.path}'. Use .txt."
            )

    def _decode(
        self, latents: Tensor, default: Path, *, title: str, columns: int = COLUMNS
    ) -> list[str]:
        task = override_task_search(self.task, overrides=self.overrides)
        assert isinstance(task, Autoencodes)
        decoded = task.decode(latents)
        if isinstance(decoded, list):
            return decoded
        tiles = [Tile(resize_image(check_image(to_image(pixels)))) for pixels in decoded]
        path = self.path or default
        save(path, sheet(tiles, columns=columns, title=title), title=title)
        return [str(path)]
