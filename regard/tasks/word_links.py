"""Word alignments of training pairs, read from a Pharaoh file."""

import unicodedata
from collections.abc import Sequence
from dataclasses import replace

from regard.core.errors import DataError
from regard.data.example import Alignment, Example
from regard.data.splits import Splits
from regard.data.text.lines import file_name, read_lines
from regard.data.text.tokenizers import split_words
from regard.metrics.text.alignment import parse_pharaoh


def add_links(loaded: Splits | Sequence[Example], path: str) -> Splits | Sequence[Example]:
    """Return data with the word alignments of a Pharaoh file, sure and possible links alike.

    Args:
        loaded: All pairs of a file, or the splits of a built-in data set, whose training pairs get
            the alignments.
        path: File with one line per pair, `.gz` or not; words are separated by whitespace.
    """
    if isinstance(loaded, Splits):
        return replace(loaded, train=_align(loaded.train, path))
    return _align(loaded, path)


def _align(examples: Sequence[Example], path: str) -> list[Example]:
    _, links = parse_pharaoh(read_lines(path), file_name(path))
    if len(links) != len(examples):
        raise DataError(
            f"{path} has {len(links):,} lines, but there are {len(examples):,} training pairs. "
            "`data.links` must have one line per pair; pairs with an empty side are not counted."
        )
    return [
        replace(example, alignment=_by_words(example, pair, location=f"{path}, line {number:,}"))
        for number, (example, pair) in enumerate(zip(examples, links, strict=True), start=1)
    ]


def _by_words(example: Example, links: set[tuple[int, int]], *, location: str) -> Alignment:
    """Convert links between words at whitespace to links between words of `split_words`."""
    sources, targets = _split_index(example.source), _split_index(example.target)
    for source, target in links:
        if source >= len(sources) or target >= len(targets):
            raise DataError(
                f"{location}: the link {source}-{target} is outside its pair of {len(sources)} and "
                f"{len(targets)} words; words are separated by whitespace and counted from 0."
            )
    expanded = {
        (source, target)
        for source_word, target_word in links
        for source in sources[source_word]
        for target in targets[target_word]
    }
    return tuple(sorted(expanded))


def _split_index(text: str) -> list[range]:
    """Return the indices of the `split_words` words inside each word at whitespace."""
    words, start = [], 0
    for word in unicodedata.normalize("NFC", text).split():
        num = len(split_words(word))
        words.append(range(start, start + num))
        start += num
    return words
