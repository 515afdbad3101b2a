"""Averaging of the weights of the last validations."""

import re
import shutil
from collections.abc import Collection, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from regard.core.checksums import add_checksums, find_fault, forget_checksums, listed_files
from regard.core.errors import CheckpointError
from regard.core.logging import logger
from regard.training.checkpoint import read_weights, save_weights

_NAME = re.compile(r"step-([0-9]+)\.safetensors")


def average_weights(paths: Sequence[Path]) -> dict[str, Tensor]:
    """Return the mean of the weights in several files; integers are taken from the last."""
    sums: dict[str, Tensor] = {}
    weights: dict[str, Tensor] = {}
    for path in paths:
        weights = read_weights(path)
        sums = sums or {name: torch.zeros_like(weights[name]).double() for name in weights}
        if {n: t.shape for n, t in weights.items()} != {n: t.shape for n, t in sums.items()}:
            raise CheckpointError(
                f"{path} and {paths[0]} cannot be averaged: their weights differ in name or shape."
            )
        for name, tensor in weights.items():
            sums[name] += tensor
    return {
        name: (sums[name] / len(paths)).to(last.dtype) if last.is_floating_point() else last
        for name, last in weights.items()
    }


class Averages:
    """Checkpoints of the last validations, for weight averaging."""

    def __init__(self, folder: Path, max_kept: int) -> None:
        self._folder = folder
        self._max_kept = max_kept

    def keep(self, model: nn.Module, step: int) -> None:
        """Save the weights of a step and remove the oldest."""
        if self._max_kept:
            save_weights(model, self._folder / f"step-{step:09}.safetensors")
            add_checksums(self._folder)
            self._remove(self.paths()[: -self._max_kept])

    def remove(self, after: int) -> None:
        """Remove the weights of later steps, and damaged ones with a warning."""
        undamaged = self.undamaged()
        self._remove([p for p in self._listed() if p not in undamaged or _step(p) > after])

    def paths(self) -> list[Path]:
        """Return the paths of the checkpoints, oldest first."""
        return [p for p in sorted(self._folder.glob("step-*")) if _NAME.fullmatch(p.name)]

    def undamaged(self) -> list[Path]:
        """Return the paths of the checkpoints that are as they were written; log the others."""
        undamaged: list[Path] = []
        for path in self._listed():
            if fault := find_fault(path):
                logger.warning("%s %s. It is not averaged.", path, fault)
            else:
                undamaged.append(path)
        return undamaged

    def _listed(self) -> list[Path]:
        """Return the paths of the checkpoints, also of missing ones; other files are left alone."""
        listed = [p for p in listed_files(self._folder) if _NAME.fullmatch(p.name)]
        return sorted({*self.paths(), *listed})

    def _remove(self, paths: Collection[Path]) -> None:
        if paths:
            forget_checksums(self._folder, [path.name for path in paths])
        for path in paths:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def _step(path: Path) -> int:
    return int(path.stem.removeprefix("step-"))
