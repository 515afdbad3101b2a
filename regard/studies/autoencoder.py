"""An autoencoder as its studies see it: originals, codes, errors, and a linear rival."""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.core.errors import ConfigError, DataError
from regard.core.files import read_json, sha256, write_json
from regard.data.example import Example
from regard.data.image.builtin import split_reference
from regard.data.splits import Splits
from regard.metrics.vision.images import squared_errors
from regard.models.pca import Pca
from regard.runs.folder import WEIGHTS, load_one
from regard.runs.train import read_run_data
from regard.tasks.image_to_image.metrics import to_bytes
from regard.tasks.latents import check_autoencoder

NUM_FITTED = 10_000
"""Training items that principal components are fitted to at most, evenly chosen."""


class Subject:
    """A run that has codes, with what it learned from."""

    def __init__(self, folder: str | Path, device: str = "auto") -> None:
        """Open a run.

        Args:
            folder: Its folder.
            device: Where the model goes.
        """
        self.folder = Path(folder)
        self.task = cast(Any, load_one(folder, device))
        check_autoencoder(self.task)
        if self.task.source.modality == "video":
            raise ConfigError(
                f"A run that reads images or sentences is needed, but {folder} reads videos and "
                "draws what comes after them."
            )
        self.reads_text = self.task.source.modality == "text"
        """Whether sources are sentences, not images."""

    @cached_property
    def fingerprint(self) -> str:
        """Checksum of the weights."""
        return sha256(self.folder / WEIGHTS)

    def remembered(self, file: str, make: Callable[[], Any]) -> Any:
        """Return what is made once and kept in the run folder, for as long as the weights stay.

        So whoever has the run folder alone, without its training data, can still use it.

        Args:
            file: What it is kept in.
            make: Makes what JSON can hold.
        """
        path = self.folder / file
        if path.exists():
            known = read_json(path)
            if known.get("weights") == self.fingerprint:
                return known["value"]
        value = make()
        write_json(path, {"weights": self.fingerprint, "value": value})
        return value

    @cached_property
    def learned_from(self) -> Splits:
        """What the run was trained on, read again."""
        return read_run_data(self.folder, self.task)

    @cached_property
    def fitted_to(self) -> list[Any]:
        """Training sources to fit something to: all, or evenly many of them."""
        train = self.learned_from.train
        rows = np.linspace(0, len(train) - 1, min(NUM_FITTED, len(train))).astype(int)
        return [train[row].source for row in rows]

    @cached_property
    def width(self) -> int:
        """Numbers of a code."""
        return int(self.task.encode(self.fitted_to[:1]).shape[1])

    def read(self, data: str) -> list[Any]:
        """Return the sources of a file or a folder, or those of a data set's test side.

        A numbered picture, such as `shapes/0/3`, stands for itself.
        """
        if not self.reads_text and split_reference(data) is not None:
            return [data]
        examples = self.task.read_side((data,), "test", config=self.task.recipe.data)
        if not examples:
            raise DataError(f"{data} holds nothing to look at.")
        return [example.source for example in examples]

    def pixels(self, sources: Sequence[str]) -> Tensor:
        """Return images as they should be drawn, (B, C, Y, X), in 8 bits."""
        return torch.from_numpy(np.concatenate(self.task.target.read_all(sources)))

    def drawn(self, sources: Sequence[str]) -> Tensor:
        """Return images as they come back from their codes, (B, C, Y, X), in 8 bits."""
        images: Tensor = self.task.decode(self.task.encode(sources))
        return images

    def originals(self, sources: Sequence[Any]) -> Tensor:
        """Return sources as vectors: pixels from 0 to 1; of a text how often each token is in it.

        The counts are divided by their length, so that long texts are no further from each other.
        """
        if not self.reads_text:
            return self.pixels(sources).flatten(1).float() / 255  # (B, D)
        counts = torch.zeros(len(sources), self.task.source.spec.vocab_size)
        for row, ids in zip(counts, self.task.source.read_all(sources), strict=True):
            row += torch.bincount(torch.tensor(ids), minlength=len(row))
        return torch.nn.functional.normalize(counts, dim=-1)

    def rival(self, width: int) -> Pca:
        """Return principal components of the training data, as many as a code has numbers."""
        vectors = self.originals(self.fitted_to)
        return Pca.fit(vectors, min(width, *vectors.shape))

    def errors(self, sources: Sequence[Any]) -> NDArray[np.float64]:
        """Return how badly each source comes back from its code, (B,).

        Of an image it is the squared error of a value, where black is 0 and white is 1; of a text
        what a token costs, in nats.
        """
        if not self.reads_text:
            return squared_errors(self.drawn(sources).numpy(), self.pixels(sources).numpy())
        scored = self.task.score([Example(text, text) for text in sources])
        return np.array([-one.log_prob / max(1, len(one.tokens)) for one in scored])

    def rival_errors(self, sources: Sequence[Any], rival: Pca) -> NDArray[np.float64]:
        """Return how badly each source comes back from principal components, (B,)."""
        vectors = self.originals(sources)
        back = rival.decode(rival.encode(vectors))
        if not self.reads_text:
            # As for our own images: nothing is darker than black, and there are 256 shades.
            back = to_bytes(back).float() / 255
        found: NDArray[np.float64] = (back - vectors).double().square().mean(1).numpy()
        return found
