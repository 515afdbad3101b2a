"""Principal component analysis, the linear autoencoder (Pearson 1901)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.errors import ConfigError


@dataclass(frozen=True)
class Pca:
    """Projection to the principal components, and back.

    No linear latent of the same width has a lower reconstruction error (Eckart and Young 1936;
    Baldi and Hornik 1989).
    """

    mean: Tensor
    """(D,), mean of the vectors."""
    directions: Tensor
    """(C, D), orthonormal principal directions."""
    variances: Tensor
    """(C,), variance along each direction."""

    @classmethod
    def fit(cls, vectors: Tensor, num_components: int) -> "Pca":
        """Compute the principal components. The largest coordinate of each is positive.

        Args:
            vectors: (B, D).
            num_components: Number of components.
        """
        max_components = min(vectors.shape)
        if not 1 <= num_components <= max_components:
            raise ConfigError(
                f"`num_components` must be from 1 to {max_components}, the minimum of the number "
                f"of vectors and their width, but is {num_components}."
            )
        mean = vectors.double().mean(0)
        centred = vectors.double() - mean
        # Both products give the same directions. Decompose the smaller one, which is faster.
        if len(vectors) >= vectors.shape[1]:
            values, eigenvectors = torch.linalg.eigh(centred.T @ centred)
            directions = eigenvectors.T.flip(0)[:num_components]  # (C, D)
        else:
            values, eigenvectors = torch.linalg.eigh(centred @ centred.T)
            directions = eigenvectors.T.flip(0)[:num_components] @ centred
            # Directions without variance are noise; orthogonalise them, too.
            directions = torch.linalg.qr(directions.T).Q.T
        largest = directions.gather(1, directions.abs().argmax(1, keepdim=True))  # (C, 1)
        directions = directions * torch.where(largest < 0, -1.0, 1.0)
        variances = values.flip(0)[:num_components].clamp(min=0) / max(1, len(vectors) - 1)
        return cls(mean.float(), directions.float(), variances.float())

    @property
    def width(self) -> int:
        """Number of components."""
        return len(self.directions)

    def encode(self, vectors: Tensor) -> Tensor:
        """Project vectors (B, D) to latents (B, C)."""
        return (vectors.float() - self.mean) @ self.directions.T

    def decode(self, latents: Tensor) -> Tensor:
        """Reconstruct vectors (B, D) from latents (B, C)."""
        return latents @ self.directions + self.mean
