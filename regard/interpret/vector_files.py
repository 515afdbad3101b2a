"""Vectors on disk: `.npy`, or `.safetensors` that also says how they were made."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from regard.core.errors import ConfigError, DataError
from regard.core.files import replacing
from regard.interpret.embed import Vectors

SUFFIXES = (".npy", ".safetensors")
NAME = "vectors"
"""What the vectors are called in a `.safetensors` file."""


def check_vector_file(path: Path) -> None:
    """Raise a `ConfigError` unless a file's name says how vectors are to be written."""
    if path.suffix not in SUFFIXES:
        raise ConfigError(f"`--out` must end in .npy or .safetensors, but is '{path}'.")


def save_vectors(path: Path, vectors: Vectors, making: Mapping[str, object]) -> None:
    """Write vectors (N, D) whole or not at all, in the format that the file name ends in.

    Args:
        path: Ends in `.npy` or `.safetensors`.
        vectors: One row a source.
        making: How they were made; `.npy` has no room for it.
    """
    check_vector_file(path)
    try:
        with replacing(path) as temporary:
            if path.suffix == ".npy":
                with temporary.open("wb") as file:
                    np.save(file, vectors)
            else:
                told = {name: str(value) for name, value in making.items()}
                save_file({NAME: np.ascontiguousarray(vectors)}, temporary, metadata=told)
    except OSError as error:
        raise DataError(
            f"{path} cannot be written ({error.strerror or error}). Name another place."
        ) from None
