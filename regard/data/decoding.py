"""Decoding of many files to arrays, each once, in worker processes and with a cache on disk."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from regard.core.cached_folder import cache_folder
from regard.core.errors import DataError
from regard.core.logging import logger
from regard.core.progress import count_each, counting
from regard.core.workers import count_workers, map_chunks
from regard.data.cache import ArrayCache, Decoded
from regard.data.example import Example
from regard.data.media import Array, Decoder

NUM_CACHED = 64
"""Minimum number of files to use the cache; fewer are decoded again in a short time."""

NUM_PER_WORKER = 250
"""Minimum number of files per worker process."""

CHUNK = 32
"""Number of files that a worker process gets at a time."""


def decode(references: Iterable[str], decoder: Decoder) -> Decoded:
    """Decode items, each distinct reference once, and collect the errors.

    If there are many files, they are cached on disk until the settings or the files change.
    """
    numbered: dict[str, list[tuple[str, str]]] = {}
    files: list[str] = []
    for reference in dict.fromkeys(references):
        if item := decoder.medium.split_numbered(reference):
            numbered.setdefault(item[0], []).append((reference, item[1]))
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
    """Drop the examples whose item cannot be read, and log their number and the first error.

    Called once before training, so that no epoch fails half-way.

    Args:
        examples: Examples with one item each.
        decoder: Decoder of the items.
        reference: Function that returns the item of an example.
    """
    # Numbered items have no files that could be unreadable.
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
    noun = f"{decoder.medium.name}s"
    if decoder.row and len(references) >= NUM_CACHED:
        folder = cache_folder() / noun
        cache = ArrayCache(folder, decoder)
        decoded = cache.load(references)
        missing = [reference for reference in references if reference not in decoded]
        if len(missing) >= NUM_CACHED:
            logger.info("reading %s %s, to be kept in %s", f"{len(missing):,}", noun, folder)
            with counting(f"Reading {noun}", len(missing)) as advance:
                cache.save(missing, count_each(read_many(missing, decoder), advance))
            decoded = cache.load(references)
            if any(reference not in decoded for reference in missing):
                raise DataError(
                    f"{noun.capitalize()} have changed while they were read. Try again."
                )
            return decoded
    with counting(f"Reading {noun}", len(missing)) as advance:
        decoded.add(missing, count_each(read_each(missing, decoder.read), advance))
    return decoded


def read_many(references: Sequence[str], decoder: Decoder) -> Iterator[Array | str]:
    """Decode files, many of them in worker processes."""
    num_workers = count_workers(len(references), NUM_PER_WORKER) if decoder.has_workers else 0
    if num_workers < 2:
        yield from read_each(references, decoder.read)
        return
    work = partial(read_files, read=decoder.read)
    for results in map_chunks(work, split(references, CHUNK), num_workers=num_workers):
        yield from results


def split(references: Sequence[str], size: int) -> list[Sequence[str]]:
    """Split references into chunks of at most `size`."""
    return [references[start : start + size] for start in range(0, len(references), size)]


def read_files(references: Iterable[str], read: Callable[[str], Array]) -> list[Array | str]:
    """Decode files; return an array or an error message for each."""
    return list(read_each(references, read))


def read_each(references: Iterable[str], read: Callable[[str], Array]) -> Iterator[Array | str]:
    """Decode files one by one; yield an array or an error message for each."""
    for reference in references:
        try:
            result: Array | str = read(reference)
        except DataError as error:
            result = str(error)
        yield result
