"""Train what the result pages show, several runs side by side, and gather one JSON file.

    python benchmarks/experiments.py multi30k --jobs 4 --out docs/results

The pages are drawn from the JSON files by `benchmarks/pages.py`.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from joining import join_neighbours
from side_by_side import Run, train_all

from regard.core.files import read_json, read_json_lines, write_json, write_text
from regard.data.datasets.catalog import find_data
from regard.data.example import Example
from regard.data.splits import Splits
from regard.data.text.readers import read_examples, write_examples
from regard.metrics.grouping import by_length
from regard.metrics.text.bleu import bleu
from regard.runs import folder as runs
from regard.studies.compare.comparison import compare
from regard.studies.compare.rendering import comparison_page
from regard.studies.ladder import FULL

EDGES = (5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 60)
LONG = 20
"""A sentence of more source words than this is long."""

TATOEBA = (
    "train.max_epochs=12",
    "train.max_steps=0",
    "train.validate_every=0",
    "data.batch.max_tokens=8000",
    "train.schedule.warmup_steps=400",
)
"""Four times as many pairs as Multi30k, and shorter ones: larger batches, fewer epochs."""


def _multi30k(_folder: Path) -> list[Run]:
    data = ("multi30k",)
    no_feed = ("model.decoder.is_input_fed=false",)
    return [
        Run("sutskever2014", "sutskever2014", data),
        Run("cho2014", "cho2014", data),
        Run("bahdanau2015", "bahdanau2015", data),
        Run("luong2015 general", "luong2015", data),
        Run("luong2015 dot", "luong2015", data, ("model.decoder.score=dot",)),
        Run("luong2015 concat", "luong2015", data, ("model.decoder.score=concat",)),
        Run("luong2015 location", "luong2015", data, ("model.decoder.score=location",)),
        Run("luong2015 local-m", "luong2015", data, ("model.decoder.span=local_m",)),
        Run("luong2015 local-p", "luong2015", data, ("model.decoder.span=local_p",)),
        Run("luong2015 general, no input feeding", "luong2015", data, no_feed),
    ]


def _ladder(data: str, *, words: tuple[str, ...] = ()) -> list[Run]:
    """Every rung, and beside the highest one what grew out of it."""
    recipes = [*FULL.values(), "vaswani2017-tiny", "modern-small"]
    return [Run(recipe, recipe, (data,), words) for recipe in recipes]


def _phrasebook(_folder: Path) -> list[Run]:
    recipes = ("bahdanau2015", "cho2014", "sutskever2014")
    return [
        Run(recipe, f"{recipe}-laptop", ("phrasebook",), seed=seed)
        for seed in (1, 2, 3)
        for recipe in recipes
    ]


def _lengths(data: str, folder: Path, *, epochs: str) -> list[Run]:
    """Train a fixed context and attention up to 30 and 50 words; test up to 60."""
    splits = find_data(data)
    if not isinstance(splits, Splits):
        sys.exit(f"{data} is not a data set with a name.")
    for side in ("valid", "test"):
        # Several cuts of the same sentences: long tests from few of them.
        pairs: list[Example] = getattr(splits, side)
        joined = [
            example
            for seed in range(3 if side == "test" else 1)
            for example in join_neighbours(pairs, most_words=60, seed=seed, most_joined=6)
        ]
        write_examples(folder / f"{side}.jsonl", joined[:3000])
    found = []
    for limit in (30, 50):
        path = folder / f"train-{limit}.jsonl"
        write_examples(path, join_neighbours(splits.train, most_words=limit))
        options = (
            "--valid", str(folder / "valid.jsonl"), "--test", str(folder / "test.jsonl"),
        )  # fmt: skip
        # Long sentences make small batches: more positions a batch keep the device busy.
        words = ("data.batch.max_tokens=8000", "train.schedule.warmup_steps=200", epochs)
        for name, recipe in (("RNNencdec", "cho2014"), ("RNNsearch", "bahdanau2015")):
            found.append(Run(f"{name}-{limit}", recipe, (str(path), *options), words))
    return found


EXPERIMENTS = {
    "multi30k": _multi30k,
    "ladder-multi30k": lambda _folder: _ladder("multi30k"),
    "ladder-tatoeba": lambda _folder: _ladder("tatoeba:deu", words=TATOEBA),
    "phrasebook": _phrasebook,
    "lengths-multi30k": lambda folder: _lengths("multi30k", folder, epochs="train.max_epochs=30"),
    "lengths-tatoeba": lambda folder: _lengths("tatoeba:deu", folder, epochs="train.max_epochs=12"),
}


def main() -> None:
    """Train the runs of an experiment and gather what they measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("experiments", nargs="+", choices=list(EXPERIMENTS))
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side")
    parser.add_argument("--threads", type=int, default=2, help="processor threads of a run")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where run folders go")
    parser.add_argument("--out", type=Path, default=Path("docs/results"), help="where JSON goes")
    parser.add_argument("--only", default="", help="names of runs, separated by commas")
    parser.add_argument("--set", nargs="*", default=[], help="settings for every run")
    arguments = parser.parse_args()
    planned: list[tuple[Run, Path]] = []
    for name in arguments.experiments:
        folder = arguments.runs / name
        folder.mkdir(parents=True, exist_ok=True)
        only = arguments.only.split(",") if arguments.only else []
        planned += [
            (run, folder) for run in EXPERIMENTS[name](folder) if not only or run.name in only
        ]
    started = time.perf_counter()
    train_all(planned, jobs=arguments.jobs, threads=arguments.threads, words=arguments.set)
    print(f"all runs took {time.perf_counter() - started:.0f} s")
    for name in arguments.experiments:
        own = [(run, folder / run.folder) for run, folder in planned if folder.name == name]
        _report(name, own, arguments)


def _report(name: str, own: list[tuple[Run, Path]], arguments: argparse.Namespace) -> None:
    if name.startswith("ladder"):
        _compare([place for _, place in own], arguments.out, name)
    rows = [_gather(run, place) for run, place in own]
    command = f"python benchmarks/experiments.py {name} --jobs {arguments.jobs}"
    if arguments.set:
        command += f" --set {' '.join(arguments.set)}"
    value = {"experiment": name, "command": command, "runs": [row for row in rows if row]}
    write_json(arguments.out / f"{name}.json", value)


def _compare(folders: list[Path], out: Path, name: str) -> None:
    """Hold every finished run against the first, as a page and as JSON."""
    finished = [folder for folder in folders if (folder / runs.METRICS).exists()]
    comparison = compare(finished)
    write_json(out / f"{name}-comparison.json", comparison.to_dict())
    write_text(out / f"{name}-comparison.html", comparison_page(comparison, title=name))


def _gather(run: Run, folder: Path) -> dict[str, Any] | None:
    if not (folder / runs.METRICS).exists():
        return None
    metrics = read_json(folder / runs.METRICS)
    examples = read_examples(folder / runs.TEST)
    outputs = json.loads((folder / runs.PREDICTIONS).read_text(encoding="utf-8"))
    sources = [example.source for example in examples]
    references = [[example.target, *example.references] for example in examples]
    groups = by_length(sources, outputs, references, edges=EDGES)
    metrics["test"]["by_length"] = [
        {"name": g.name, "count": g.count, "bleu": round(g.results["bleu"].value, 2)}
        for g in groups
    ]
    is_long = [len(source.split()) > LONG for source in sources]
    if any(is_long):
        kept = [row for row, long in enumerate(is_long) if long]
        found = bleu([outputs[row] for row in kept], [references[row] for row in kept])
        metrics["test"][f"bleu_above_{LONG}_words"] = found.to_dict() | {"count": len(kept)}
    lowered = bleu(outputs, references, is_lower_cased=True)
    metrics["test"]["scores"]["bleu_lower_cased"] = lowered.to_dict()
    samples = list(zip(sources, [r[0] for r in references], outputs, strict=True))[:20]
    rows = read_json_lines(folder / runs.TRAINING_LOG)
    journal = [
        {key: row[key] for key in ("kind", "step", "loss", "bleu", "seconds") if key in row}
        for row in rows
        if row["kind"] == "valid"
    ]
    return {
        "name": run.name,
        "recipe": run.recipe,
        **metrics,
        "samples": samples,
        "journal": journal,
        "settings": runs.read_config(folder)["recipe"],
        "is_averaged": any(row["kind"] == "average" and row["is_best"] for row in rows),
    }


if __name__ == "__main__":
    main()
