"""Do encoders of translators put paraphrases close together? Train the ladder, and look.

    python benchmarks/paraphrases.py --jobs 4 && python benchmarks/pages.py

The data are Tatoeba's pairs, German → English: the German translations of one English sentence
are paraphrases of each other. No English sentence of the test, and no German one, is trained on.
Runs that are finished are taken as they are.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import conduct
from experiments import TATOEBA
from side_by_side import Run, train_all

from regard.core.files import read_json, write_json
from regard.data.datasets.catalog import find_data
from regard.data.example import Example
from regard.data.splits import Splits, drop_overlap, split_by_source
from regard.data.text.readers import write_examples
from regard.interpret.embed import embed, project
from regard.interpret.probes import untrained_copy
from regard.metrics.representation.vectors import (
    Array,
    BagOfWords,
    cosines,
    nearest,
    retrieve,
    shared_words,
)
from regard.runs import folder as runs
from regard.studies.ladder import FULL, LAPTOP

NAME = "paraphrases"
FOLDER = Path(__file__).parent.parent / "docs" / "results"
DATA = "tatoeba:deu"
NUM_HELD_OUT = 3_000
"""Pairs of the test: three times as many as elsewhere, for more groups and narrower intervals."""

POOLINGS = ("summary", "mean")
NUM_BOOTSTRAP = 1_000
NUM_DRAWN = 4
"""Groups in the picture: the first that have at least three sentences."""

MOST_DRAWN = 4
"""Sentences of each of them."""

NUM_SAMPLES = 12

MOST_SHARED = 0.25
"""Share of their words at most that paraphrases of mostly other words have in common."""


@dataclass(frozen=True)
class Paraphrases:
    """German sentences, those of one English sentence in one group."""

    sentences: tuple[str, ...]
    groups: tuple[str, ...]
    """The English sentence that each translates."""

    @cached_property
    def members(self) -> dict[str, list[int]]:
        """The sentences of each group."""
        rows: dict[str, list[int]] = {}
        for row, group in enumerate(self.groups):
            rows.setdefault(group, []).append(row)
        return rows

    @cached_property
    def asking(self) -> list[int]:
        """The first sentence of each group of several."""
        return [own[0] for own in self.members.values() if len(own) > 1]

    @cached_property
    def unlike(self) -> list[int]:
        """The sentences that share few words with each of their group."""
        return [
            row
            for own in self.members.values()
            for row in own
            if len(own) > 1
            and all(
                shared_words(self.sentences[row], self.sentences[other]) <= MOST_SHARED
                for other in own
                if other != row
            )
        ]

    def drawn(self) -> list[int]:
        """Return which sentences are in the picture, group by group."""
        large = [own[:MOST_DRAWN] for own in self.members.values() if len(own) > 2]
        return [row for own in large[:NUM_DRAWN] for row in own]


def split_pairs(examples: Sequence[Example], *, most: int = NUM_HELD_OUT) -> Splits:
    """Split English → German pairs by their English side, and turn them round.

    A German sentence that is held out is not trained on with another English one either.
    """
    split = split_by_source(examples, max_examples=most)
    turned = [
        [Example(example.target, example.source) for example in side]
        for side in (split.train, split.valid, split.test)
    ]
    train, num_dropped = drop_overlap(turned[0], turned[1] + turned[2])
    note = (
        f"{split.note}; German → English, {num_dropped:,} pairs dropped, whose German is held out"
    )
    return Splits(train, turned[1], turned[2], note)


def find_paraphrases(test: Sequence[Example]) -> Paraphrases:
    """Return each German sentence of a test set once, with the English one it stands by first."""
    groups: dict[str, str] = {}
    for example in test:
        groups.setdefault(example.source, example.target)
    return Paraphrases(tuple(groups), tuple(groups.values()))


def measure(vectors: Array, found: Paraphrases) -> dict[str, Any]:
    """Measure how well vectors find paraphrases: all of them, and those of mostly other words."""
    similar = cosines(vectors, vectors)
    values = {}
    for name, asked in (("all", None), ("other_words", found.unlike)):
        results = retrieve(similar, found.groups, queries=asked, num_bootstrap=NUM_BOOTSTRAP)
        values[name] = {measure: result.to_dict() for measure, result in results.items()}
    return values


def measure_run(name: str, folder: Path, found: Paraphrases) -> dict[str, Any]:
    """Measure a run, beside itself before it learned, and place the sentences of the picture."""
    task = runs.load_one(folder)
    fresh = untrained_copy(task)
    vectors = {kind: embed(task, found.sentences, pooling=kind) for kind in POOLINGS}
    points, share = project(vectors["summary"][found.drawn()])
    places = nearest(_without_self(vectors["summary"]), 1)[:, 0]
    metrics = read_json(folder / runs.METRICS)
    metrics["command"] = conduct.without_places(metrics["command"], folder)
    about = ("commit", "hardware", "torch", "regard", "command", "parameters", "seed", "training")
    return {
        "name": name,
        **{key: metrics[key] for key in about},
        "bleu": metrics["test"]["scores"]["bleu"],
        "found": {kind: measure(own, found) for kind, own in vectors.items()},
        "fresh": {
            kind: measure(embed(fresh, found.sentences, pooling=kind), found) for kind in POOLINGS
        },
        "points": points.tolist(),
        "share": share,
        "samples": _samples(places, found),
    }


def _samples(places: Any, found: Paraphrases) -> list[dict[str, Any]]:
    """Return what the first sentences of the first groups find, and whether it is a paraphrase."""
    return [
        {
            "text": found.sentences[places[row]],
            "is_right": found.groups[places[row]] == found.groups[row],
        }
        for row in found.asking[:NUM_SAMPLES]
    ]


def _without_self(vectors: Array) -> Any:
    similar = cosines(vectors, vectors)
    similar[range(len(similar)), range(len(similar))] = -2
    return similar


def main() -> None:
    """Train the rungs that are not trained yet, and measure all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, default=Path("runs") / NAME, help="where runs go")
    parser.add_argument("--out", type=Path, default=FOLDER, help="where JSON goes")
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side")
    parser.add_argument("--threads", type=int, default=2, help="processor threads of a run")
    parser.add_argument("--laptop", action="store_true", help="the small recipes")
    parser.add_argument("--only", default="", help="names of rungs to train, joined by commas")
    parser.add_argument("--gather", action="store_true", help="only gather what is finished")
    parser.add_argument("--set", nargs="*", default=[], help="settings for every run")
    parser.add_argument("--note", default="", help="what the page should say of these runs")
    arguments = parser.parse_args()
    whole = find_data(DATA)
    if not isinstance(whole, Splits):
        parser.error(f"{DATA} is not a data set with a name.")
    splits = split_pairs([*whole.train, *whole.valid, *whole.test])
    files = _write_files(arguments.runs / "data", splits)
    planned = _plan(files, arguments)
    if not arguments.gather:
        chosen = conduct.choose(planned, arguments.only)
        train_all(chosen, jobs=arguments.jobs, threads=arguments.threads, words=arguments.set)
    value, faults = _gather(planned, splits, note=arguments.note)
    print(f"{len(value['runs'])} of {len(planned)} runs gathered")
    if value["runs"]:
        write_json(arguments.out / f"{NAME}.json", value)
    conduct.end(faults)


def _write_files(folder: Path, splits: Splits) -> tuple[str, ...]:
    """Write the three sides; a thousand pairs are enough to watch and to score translations."""
    folder.mkdir(parents=True, exist_ok=True)
    sides = {"train": splits.train, "valid": splits.valid[:1000], "test": splits.test[:1000]}
    for side, examples in sides.items():
        write_examples(folder / f"{side}.jsonl", examples)
    train, valid, test = (str(folder / f"{side}.jsonl") for side in sides)
    return (train, "--valid", valid, "--test", test)


def _plan(files: tuple[str, ...], arguments: argparse.Namespace) -> list[tuple[Run, Path]]:
    recipes, words = (LAPTOP, ()) if arguments.laptop else (FULL, TATOEBA)
    return [(Run(name, recipe, files, words), arguments.runs) for name, recipe in recipes.items()]


def _gather(
    planned: Sequence[tuple[Run, Path]], splits: Splits, *, note: str
) -> tuple[dict[str, Any], list[str]]:
    """Return what the page shows of all that is finished, and the runs that failed to tell."""
    found, faults = find_paraphrases(splits.test), list[str]()
    rows = [
        conduct.attempt(
            partial(measure_run, run.name, folder / run.folder, found), run.name, faults
        )
        for run, folder in planned
        if (folder / run.folder / runs.METRICS).exists()
    ]
    bag = BagOfWords([example.source for example in splits.train])(found.sentences)
    asking, drawn = found.asking[:NUM_SAMPLES], found.drawn()
    value = {
        "experiment": NAME,
        "command": "python benchmarks/paraphrases.py",
        "data": splits.note,
        "note": note,
        "bag": measure(bag, found),
        "bag_samples": _samples(nearest(_without_self(bag), 1)[:, 0], found),
        "runs": [row for row in rows if row is not None],
        "drawn": [{"text": found.sentences[row], "group": found.groups[row]} for row in drawn],
        "asked": [{"text": found.sentences[row], "group": found.groups[row]} for row in asking],
    }
    return value, faults


if __name__ == "__main__":
    main()
