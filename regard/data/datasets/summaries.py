"""Longer texts → one sentence that says what they are about."""

from regard.data.datasets.loading import check_argument, find_folder, with_sizes
from regard.data.splits import Splits, drop_overlap
from regard.data.text.readers import read_examples


def load_synopsis(argument: str, seed: int) -> Splits:
    """Return descriptions of software packages with their one-line synopsis."""
    return _load("synopsis", argument, [f"{side}.tsv.gz" for side in ("train", "valid", "test")])


def load_scitldr(argument: str, seed: int) -> Splits:
    """Return abstracts with one or more summaries of a sentence (Cachola et al. 2020)."""
    return _load("scitldr", argument, [f"{side}.jsonl.gz" for side in ("train", "dev", "test")])


def _load(name: str, argument: str, files: list[str]) -> Splits:
    check_argument(argument, name)
    folder = find_folder(name, files[0])
    train, valid, test = (read_examples(folder / file) for file in files)
    splits = with_sizes((train, valid, test), f"official split of {folder}")
    _, num_shared = drop_overlap(train, [*valid, *test])
    shared = f"{num_shared:,} training pairs have" if num_shared else "no training pair has"
    return Splits(train, valid, test, f"{splits.note}; {shared} a source that is held out, too")
