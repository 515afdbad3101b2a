"""Prediction by several processes: each predicts groups of sources, the first one joins them."""

from collections.abc import Callable, Iterable
from itertools import cycle
from pathlib import Path
from typing import Any, BinaryIO

from regard.core.errors import ConfigError, DataError
from regard.core.files import find_irreplaceable_kind, replacing
from regard.data.text.lines import STANDARD_INPUT
from regard.runs.prediction.groups import group
from regard.runs.prediction.predict import NUM_SOURCES
from regard.tasks.base import GeneratesImages, Task
from regard.training.distributed.processes import Processes


def check_shared(task: Task[Any], source: str, out: Path | None) -> Path:
    """Return the file for the predictions of several processes; raise if they cannot predict."""
    if source == STANDARD_INPUT:
        raise ConfigError(
            "Standard input can be read by one process only. Name a file, which all processes read."
        )
    if isinstance(task, GeneratesImages):
        raise ConfigError("Images are predicted by one process only. Leave out `torchrun`.")
    if out is None:
        raise ConfigError("Predictions of several processes need a file. Name one with `--out`.")
    if kind := "a folder" if out.is_dir() else find_irreplaceable_kind(out):
        raise ConfigError(f"`--out` must be a file, but {out} is {kind}. Name another file.")
    return out


def predict_shares(
    sources: Iterable[str],
    out: Path,
    *,
    processes: Processes,
    predict: Callable[[list[str], int], str],
) -> None:
    """Write the predictions of all sources to a file, in their order, in constant memory.

    Groups of as many sources as one process alone predicts at once are dealt out to the processes
    in turn, so predictions are those of one process. Each process writes its own into a file beside
    `out`, on a file system that all machines share; the first process joins these files.

    Args:
        sources: All sources; every process reads all of them.
        out: The file.
        processes: The processes.
        predict: Returns the text to write for a group of sources and the number of the first one.
    """
    paths = [out.with_name(f".{out.name}.{rank}.part") for rank in range(processes.num)]
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        with paths[processes.rank].open("wb") as file:
            for number, taken in enumerate(group(sources, NUM_SOURCES)):
                if number % processes.num == processes.rank:
                    text = predict(taken, number * NUM_SOURCES + 1).encode()
                    file.write(b"%d\n" % len(text))
                    file.write(text)
        processes.wait()
        if processes.is_first:
            _join(paths, out)
        processes.wait()
    finally:
        paths[processes.rank].unlink(missing_ok=True)


def _join(paths: list[Path], out: Path) -> None:
    """Join files of groups: the first group of each file in turn, then the second, and so on."""
    files = [_open(path) for path in paths]
    with replacing(out) as temporary, temporary.open("wb") as joined:
        for file in cycle(files):
            size = file.readline()
            if not size:
                break
            joined.write(file.read(int(size)))
    for file in files:
        file.close()


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise DataError(
            f"{path} is missing. The folder of `--out` must be on a file system that all machines "
            "share."
        ) from None
