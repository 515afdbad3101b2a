"""A run of an autoencoder with its data: reconstructions, errors and a PCA baseline."""

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
from regard.metrics.vision.images import image_mse
from regard.models.pca import Pca
from regard.runs.folder import WEIGHTS, load_one
from regard.runs.saved.data import read_run_data
from regard.tasks.image_to_image.metrics import to_bytes
from regard.tasks.latents import check_autoencoder

MAX_FIT_SOURCES = 10_000
"""Maximum number of training items for fitting PCA, evenly spaced."""


class AutoencoderRun:
    """A run of an autoencoder, with its training data."""

    def __init__(self, folder: str | Path, device: str = "auto") -> None:
        """Load a run.

        Args:
            folder: The run folder.
            device: Device of the model.
        """
        self.folder = Path(folder)
        self.task = cast(Any, load_one(folder, device))
        check_autoencoder(self.task)
        if self.task.source.modality == "video":
            raise ConfigError(
                f"A run with images or sentences as sources is needed, but {folder} predicts the "
                "next frame of videos."
            )
        self.is_text = self.task.source.modality == "text"
        """Whether sources are sentences, not images."""

    @cached_property
    def fingerprint(self) -> str:
        """Checksum of the weights."""
        return sha256(self.folder / WEIGHTS)

    def cached(self, file: str, compute: Callable[[], Any]) -> Any:
        """Return a value that is computed once and cached in the run folder until weights change.

        With the cache, the value is available without the training data.

        Args:
            file: Name of the cache file.
            compute: Function that computes a value for JSON.
        """
        path = self.folder / file
        if path.exists():
            cache = read_json(path)
            if cache.get("weights") == self.fingerprint:
                return cache["value"]
        value = compute()
        write_json(path, {"weights": self.fingerprint, "value": value})
        return value

    @cached_property
    def splits(self) -> Splits:
        """Training, validation and test data of the run."""
        return read_run_data(self.folder, self.task)

    @cached_property
    def fit_sources(self) -> list[Any]:
        """Training sources for fitting PCA: all, or evenly spaced ones."""
        train = self.splits.train
        rows = np.linspace(0, len(train) - 1, min(MAX_FIT_SOURCES, len(train))).astype(int)
        return [train[row].source for row in rows]

    @cached_property
    def latent_dim(self) -> int:
        """Dimension of the latents."""
        return int(self.task.encode(self.fit_sources[:1]).shape[1])

    def read_sources(self, data: str) -> list[Any]:
        """Return the sources of a file, a folder, or the test part of a built-in data set.

        The reference of a built-in image, such as `shapes/0/3`, is returned as it is.
        """
        if not self.is_text and split_reference(data) is not None:
            return [data]
        examples = self.task.read_split((data,), "test", config=self.task.recipe.data)
        if not examples:
            raise DataError(f"{data} holds no items.")
        return [example.source for example in examples]

    def pixels(self, sources: Sequence[str]) -> Tensor:
        """Return the target images, (B, C, Y, X), in 8 bits."""
        return torch.from_numpy(np.concatenate(self.task.target.read_all(sources)))

    def reconstruct(self, sources: Sequence[str]) -> Tensor:
        """Return the images decoded from the latents of sources, (B, C, Y, X), in 8 bits."""
        images: Tensor = self.task.decode(self.task.encode(sources))
        return images

    def vectors(self, sources: Sequence[Any]) -> Tensor:
        """Return sources as vectors: pixels from 0 to 1, or token counts of texts.

        Counts are scaled to unit length, so that distances do not grow with the text length.
        """
        if not self.is_text:
            return self.pixels(sources).flatten(1).float() / 255  # (B, D)
        counts = torch.zeros(len(sources), self.task.source.spec.vocab_size)
        for row, ids in zip(counts, self.task.source.read_all(sources), strict=True):
            row += torch.bincount(torch.tensor(ids), minlength=len(row))
        return torch.nn.functional.normalize(counts, dim=-1)

    def fit_pca(self, num_components: int) -> Pca:
        """Fit PCA to the training data."""
        vectors = self.vectors(self.fit_sources)
        return Pca.fit(vectors, min(num_components, *vectors.shape))

    def reconstruction_errors(self, sources: Sequence[Any]) -> NDArray[np.float64]:
        """Return the reconstruction error of each source, (B,).

        For images, the mean squared error of pixels from 0 to 1; for texts, the mean negative
        log-likelihood per token, in nats.
        """
        if not self.is_text:
            return image_mse(self.reconstruct(sources).numpy(), self.pixels(sources).numpy())
        scored = self.task.score([Example(text, text) for text in sources])
        return np.array([-one.log_prob / max(1, len(one.tokens)) for one in scored])

    def pca_errors(self, sources: Sequence[Any], pca: Pca) -> NDArray[np.float64]:
        """Return the mean squared reconstruction error of PCA for each source, (B,)."""
        vectors = self.vectors(sources)
        decoded = pca.decode(pca.encode(vectors))
        if not self.is_text:
            # Clip and round to 8 bits, as for images of the autoencoder.
            decoded = to_bytes(decoded).float() / 255
        errors: NDArray[np.float64] = (decoded - vectors).double().square().mean(1).numpy()
        return errors
