"""A folder with a folder for each label, whatever lies in them."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from regard.data.example import Example


def pair_with_labels(root: Path, find: Callable[[Path], Iterable[Path]]) -> list[Example]:
    """Return what lies in each label's folder, with the folder's name as its label.

    Args:
        root: The folder of these folders; hidden ones are left out.
        find: What counts in such a folder, in order.
    """
    return [
        Example(os.path.abspath(item), folder.name)
        for folder in sorted(root.iterdir())
        if folder.is_dir() and not folder.name.startswith(".")
        for item in find(folder)
    ]
