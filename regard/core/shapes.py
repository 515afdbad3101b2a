"""Letters of tensor shapes, a check of the axes of a tensor, and shapes in messages."""

from torch import Tensor

LETTERS = {
    "B": "batch",
    "S": "source positions",
    "T": "target positions",
    "L": "any positions",
    "Q": "queries",
    "K": "keys",
    "D": "model width",
    "E": "width per head",
    "H": "heads",
    "N": "layers",
    "V": "vocabulary",
    "W": "beams",
    "G": "groups of beams",
    "C": "channels",
    "Y": "image rows",
    "X": "image columns",
    "P": "patches",
    "F": "frames",
    "M": "mel bins",
}


def check(name: str, tensor: Tensor, shape: str) -> None:
    """Raise `ValueError` if a tensor does not have the axes of `shape`, one letter per axis.

    Args:
        name: Name of the tensor, for the message.
        tensor: Any tensor.
        shape: Keys of `LETTERS` separated by spaces, as in `B Q D`.
    """
    axes = shape.split()
    if tensor.dim() != len(axes):
        meaning = ", ".join(LETTERS[axis] for axis in axes)
        raise ValueError(
            f"`{name}` must have the axes ({', '.join(axes)}: {meaning}), "
            f"but has the shape {tuple(tensor.shape)}."
        )


def describe_shape(tensor: Tensor) -> str:
    """Format the shape of a tensor for messages, such as '3 x 4'."""
    return " x ".join(map(str, tensor.shape)) or "a scalar"
