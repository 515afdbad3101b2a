"""Principal components: the linear autoencoder, which needs no training (Pearson 1901)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.errors import ConfigError


@dataclass(frozen=True)
class Pca:
    """Vectors → their coordinates along the directions in which they vary most, and back.

    No linear code of the same width loses less (Eckart and Young 1936; Baldi and Hornik 1989).
    """

    mean: Tensor
    """(D,), what is taken away from every vector."""
    directions: Tensor
    """(C, D), of length one, at right angles to each other."""
    variances: Tensor
    """(C,), how much vectors vary along each."""

    @classmethod
    def fit(cls, vectors: Tensor, num_components: int) -> "Pca":
        """Find the directions; the largest part of each points upwards, so that signs are settled.

        Args:
            vectors: (B, D), any real numbers.
            num_components: How many directions.
        """
        most = min(vectors.shape)
        if not 1 <= num_components <= most:
            raise ConfigError(
                f"`num_components` must be from 1 to {most}, the lesser of the number of vectors "
                f"and their width, but is {num_components}."
            )
        mean = vectors.double().mean(0)
        centred = vectors.double() - mean
        # The smaller of the two products has the same directions, and takes far less time.
        if len(vectors) >= vectors.shape[1]:
            values, found = torch.linalg.eigh(centred.T @ centred)
            directions = found.T.flip(0)[:num_components]  # (C, D)
        else:
            values, found = torch.linalg.eigh(centred @ centred.T)
            directions = found.T.flip(0)[:num_components] @ centred
            # Where nothing varies any more, what is found is noise: it is put at right angles, too.
            directions = torch.linalg.qr(directions.T).Q.T
        largest = directions.gather(1, directions.abs().argmax(1, keepdim=True))  # (C, 1)
        directions = directions * torch.where(largest < 0, -1.0, 1.0)
        variances = values.flip(0)[:num_components].clamp(min=0) / max(1, len(vectors) - 1)
        return cls(mean.float(), directions.float(), variances.float())

    @property
    def width(self) -> int:
        """Number of directions."""
        return len(self.directions)

    def encode(self, vectors: Tensor) -> Tensor:
        """Return where vectors (B, D) lie along the directions, (B, C)."""
        return (vectors.float() - self.mean) @ self.directions.T

    def decode(self, codes: Tensor) -> Tensor:
        """Return the vectors (B, D) that lie at codes (B, C)."""
        return codes @ self.directions + self.mean
