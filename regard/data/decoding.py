"""Many references → arrays, each decoded once: in worker processes, kept in a cache."""

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context
from typing import TypeVar

from regard.core.errors import DataError
from regard.core.logging import logger
from regard.data.cache import ArrayCache, Decoded
from regard.data.datasets.download import cache_folder
from regard.data.example import Example
from regard.data.media import Array, Decoder

Found = TypeVar("Found")

NUM_CACHED = 64
"""Files from which on the cache is used; fewer are soon decoded again."""

NUM_PER_WORKER = 250
"""Files that make a worker process worth its start."""

MAX_WORKERS = 16

CHUNK = 32
"""Files that a worker process decodes at once."""


def decode(references: Iterable[str], decoder: Decoder) -> Decoded:
    """Decode items, each once however often it is named, and note which cannot be read.

    Many files are decoded once for all: the next time they come from the cache, unless the
    settings or the file have changed.
    """
    numbered: dict[str, list[tuple[str, str]]] = {}
    files: list[str] = []
    for reference in dict.fromkeys(references):
        if found := decoder.medium.split_numbered(reference):
            numbered.setdefault(found[0], []).append((reference, found[1]))
        else:
            files.append(reference)
    decoded = _decode_files(files, decoder)
    for name, items in numbered.items():
        arrays = decoder.read_numbered(name, tuple(number for _, number in items))
        decoded.add((reference for reference, _ in items), arrays)
    return decoded


def read_items(references: Sequence[str], decoder: Decoder) -> list[Array]:
    """Decode items as `decode` does; raise if one cannot be read."""
    decoded = decode(references, decoder)
    if decoded.failures:
        raise DataError(next(iter(decoded.failures.values())))
    return [decoded.arrays[reference] for reference in references]


def keep_readable(
    examples: Sequence[Example],
    decoder: Decoder,
    *,
    reference: Callable[[Example], str] = lambda example: str(example.source),
) -> list[Example]:
    """Drop the examples whose item cannot be read, and log how many and why the first one.

    Called once before training, so that no epoch ends half-way.

    Args:
        examples: With an item each.
        decoder: How items are decoded.
        reference: Returns the item of an example.
    """
    # Numbered items have no file that could be bad.
    names = [reference(example) for example in examples]
    failures = decode(
        (name for name in names if not decoder.medium.split_numbered(name)), decoder
    ).failures
    pairs = zip(names, examples, strict=True)
    kept = [example for name, example in pairs if name not in failures]
    decoder.medium.report_skipped(failures.values(), num_kept=len(kept), num_given=len(examples))
    return kept


def _decode_files(references: Sequence[str], decoder: Decoder) -> Decoded:
    decoded, missing = Decoded(), references
    if decoder.row and len(references) >= NUM_CACHED:
        noun = f"{decoder.medium.name}s"
        folder = cache_folder() / noun
        cache = ArrayCache(folder, decoder)
        decoded = cache.load(references)
        missing = [reference for reference in references if reference not in decoded]
        if len(missing) >= NUM_CACHED:
            logger.info("reading %s %s, to be kept in %s", f"{len(missing):,}", noun, folder)
            cache.save(missing, read_many(missing, decoder))
            decoded = cache.load(references)
            if any(reference not in decoded for reference in missing):
                raise DataError(
                    f"{noun.capitalize()} have changed while they were read. Try again."
                )
            return decoded
    decoded.add(missing, read_files(missing, decoder.read))
    return decoded


def read_many(references: Sequence[str], decoder: Decoder) -> Iterator[Array | str]:
    """Decode files, many of them in worker processes."""
    num_workers = count_workers(len(references), NUM_PER_WORKER) if decoder.has_workers else 0
    work = partial(read_files, read=decoder.read)
    for found in spread(work, references, chunk=CHUNK, num_workers=num_workers):
        yield from found


def read_files(references: Iterable[str], read: Callable[[str], Array]) -> list[Array | str]:
    """Decode files; in the place of one that cannot be read stands a sentence that says why."""
    found: list[Array | str] = []
    for reference in references:
        try:
            found.append(read(reference))
        except DataError as error:
            found.append(str(error))
    return found


def count_workers(num: int, num_per_worker: int) -> int:
    """Return how many worker processes are worth their start for `num` items."""
    return min(MAX_WORKERS, _num_cores(), num // num_per_worker)


def spread(
    work: Callable[[Sequence[str]], Found],
    references: Sequence[str],
    *,
    chunk: int,
    num_workers: int,
) -> Iterator[Found]:
    """Do the work of each chunk of references in worker processes; results keep their order.

    Args:
        work: What is done; it is sent to the worker processes.
        references: What it is done with.
        chunk: How many references a worker process gets at once.
        num_workers: Number of worker processes; below 2, this process does the work at once.
    """
    if num_workers < 2:
        yield work(references)
        return
    chunks = [references[start : start + chunk] for start in range(0, len(references), chunk)]
    num_done = 0
    # A forked process would inherit threads and devices half-way through whatever they do.
    # Ctrl-C is left to the main process, which ends the others.
    ignore = (signal.SIGINT, signal.SIG_IGN)
    pool = ProcessPoolExecutor(num_workers, get_context("spawn"), signal.signal, ignore)
    try:
        for found in pool.map(work, chunks):
            yield found
            num_done += 1
    except BrokenProcessPool:
        logger.warning(
            "worker processes have ended early, and files are read in this one. "
            "Has your script `if __name__ == '__main__':` around what it does?"
        )
        yield from map(work, chunks[num_done:])
    finally:
        pool.shutdown(cancel_futures=True)


def _num_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
