"""The letters of tensor shapes, and a check of a tensor's axes."""

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
    "C": "channels",
    "Y": "image rows",
    "X": "image columns",
    "P": "patches",
    "F": "frames",
    "M": "mel bins",
}


def check(name: str, tensor: Tensor, shape: str) -> None:
    """Raise if a tensor does not have the axes that `shape` names, one letter an axis.

    Args:
        name: What the caller calls the tensor.
        tensor: Any tensor.
        shape: Letters of the legend separated by spaces, as in `B Q D`.
    """
    axes = shape.split()
    if tensor.dim() != len(axes):
        meaning = ", ".join(LETTERS[axis] for axis in axes)
        raise ValueError(
            f"`{name}` must have the axes ({', '.join(axes)}: {meaning}), "
            f"but has the shape {tuple(tensor.shape)}."
        )
