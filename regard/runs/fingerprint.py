"""Checksum of the data of a run: it is resumed with the same data only."""

import hashlib
from collections.abc import Iterable

from regard.data.corpus import Corpus
from regard.data.example import Example
from regard.data.splits import Splits


def fingerprint(splits: Splits) -> str:
    """Return a checksum of the data; that of a corpus is known without reading its examples."""
    if isinstance(splits.train, Corpus):
        return _hash_examples([], splits.valid, splits.test, prefix=splits.train.digest)
    return _hash_examples(splits.train, splits.valid, splits.test)


def has_fingerprint(splits: Splits, checksum: str) -> bool:
    """Return whether data has the checksum of a run."""
    if checksum == fingerprint(splits):
        return True
    # A run of an earlier version, or one whose file was too small for a corpus.
    is_corpus = isinstance(splits.train, Corpus)
    return is_corpus and checksum == _hash_examples(splits.train, splits.valid, splits.test)


def _hash_examples(*parts: Iterable[Example], prefix: str = "") -> str:
    digest = hashlib.sha256(prefix.encode())
    for part in parts:
        for example in part:
            digest.update(f"{example.source}\t{example.target}\n".encode())
        digest.update(b"\0")
    return digest.hexdigest()
