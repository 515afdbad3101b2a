"""The ladder from a fixed context to self-attention, on one data set."""

from itertools import pairwise
from pathlib import Path
from typing import Any

from regard.core.config import from_dict
from regard.core.files import read_json
from regard.plots import figure as picture
from regard.tasks.generation.recipe import Recipe

from .parts import LEAST, Runs, making, samples, score, table
from .rungs import draw

NUM_SAMPLES = 20


def write(value: dict[str, Any], folder: Path, *, title: str) -> str:
    """Write the page and draw its pictures.

    Args:
        value: What was measured.
        folder: Where the comparison of the runs lies and the pictures go.
        title: The name of the data.
    """
    runs: Runs = value["runs"]
    name = value["experiment"]
    comparison = read_json(folder / f"{name}-comparison.json")
    # A run has another name there, but was made by the same command.
    by_command = {standing["command"]: standing for standing in comparison["runs"]}
    standings: Runs = [by_command[run["command"]] for run in runs]
    _draw(runs, standings, folder / name)
    return "\n".join(
        [
            f"# The ladder on {title}, English → German",
            "",
            _summary(runs, comparison["num_examples"]),
            f"[The whole comparison]({name}-comparison.html) is a page of its own (download it to "
            "look at it).",
            "",
            _quality(runs, standings),
            "",
            "± is half a 95 % interval; lower-cased BLEU is the form that papers report. Δ BLEU is "
            f"the difference to {runs[0]['name']}, with the p-value of a paired bootstrap test, "
            "which speaks of these sentences and not of another seed. Minutes and target tokens a "
            "second include validation, and are those of runs side by side on one machine.",
            "",
            "## Where they part",
            "",
            f"![Validation BLEU by minutes of training]({name}-curves.svg)",
            "",
            "Greedy translations of the validation set while training.",
            "",
            f"![BLEU by source length]({name}-lengths.svg)",
            "",
            f"Lengths with fewer than {LEAST} test sentences are left out.",
            "",
            f"![Accuracy by target position]({name}-positions.svg)",
            "",
            "How many words of the reference each model foretells, given the right ones before "
            "them, by tenths of the target, punctuation left out.",
            "",
            "## What it took",
            "",
            _settings(runs),
            "",
            "Averaging: whether the weights tested are the mean of the last validations' weights; "
            "they are kept only if they validate better than the best before.",
            "",
            samples(runs, [run["name"] for run in runs], NUM_SAMPLES),
            "",
            making(value),
            f"- Δ BLEU `{standings[-1]['differences']['bleu']['signature']}`: "
            f"[`{name}-comparison.json`]({name}-comparison.json)",
            "",
        ]
    )


def _summary(runs: Runs, num_examples: int) -> str:
    values = {run["name"]: run["test"]["scores"]["bleu"]["value"] for run in runs}
    names = list(values)
    best = max(names, key=lambda name: values[name])
    steps = {(low, high): values[high] - values[low] for low, high in pairwise(names)}
    low, high = max(steps, key=lambda pair: steps[pair])
    return (
        "Models of 2014 to 2017, and a transformer as they are built today, trained on the same "
        f"pairs and tested on the same {num_examples:,} sentences with beam "
        f"{runs[0]['search']['beams']}: from a fixed context through attention and convolutions to "
        f"self-attention. {best} is the best with {values[best]:.1f} BLEU; the largest step from "
        f"one row to the next, {steps[low, high]:+.1f}, is the one from {low} to {high}."
    )


def _quality(runs: Runs, standings: Runs) -> str:
    rows = [
        (
            run["name"],
            f"{run['parameters'] / 1e6:.1f} M",
            f"{run['training']['seconds'] / 60:.1f}",
            f"{run['training']['tokens_per_second']:,.0f}",
            score(run, "bleu"),
            score(run, "chrf"),
            score(run, "bleu_lower_cased"),
            _difference(standing),
        )
        for run, standing in zip(runs, standings, strict=True)
    ]
    head = ("model", "weights", "minutes", "tokens/s", "BLEU", "chrF2", "lower-cased", "Δ BLEU")
    return table(head, rows)


def _difference(standing: dict[str, Any]) -> str:
    found = standing["differences"].get("bleu")
    return f"{found['value']:+.1f} (p {found['p_value']:.3f})" if found else "–"


def _draw(runs: Runs, standings: Runs, stem: Path) -> None:
    names = [run["name"] for run in runs]
    learning = [[(row["seconds"] / 60, row["bleu"]) for row in run["journal"]] for run in runs]
    lengths, positions = (
        [
            [(group["place"], group[key]) for group in standing[groups] if group["count"] >= LEAST]
            for standing in standings
        ]
        for groups, key in (("by_length", "bleu"), ("by_position", "accuracy"))
    )
    for end, series, x_label, y_label in (
        ("curves", learning, "minutes of training", "validation BLEU"),
        ("lengths", lengths, "words in the source", "BLEU"),
        ("positions", positions, "place in the target, in percent", "words foretold, %"),
    ):
        figure = draw(dict(zip(names, series, strict=True)), x_label=x_label, y_label=y_label)
        picture.save(stem.with_name(f"{stem.name}-{end}.svg"), figure)


def _settings(runs: Runs) -> str:
    head = (
        "model", "vocabulary", "batch tokens", "dropout", "label smoothing", "learning rate",
        "limit", "trained", "averaging",
    )  # fmt: skip
    return table(head, [_settings_row(run, from_dict(Recipe, run["settings"])) for run in runs])


def _settings_row(run: dict[str, Any], recipe: Recipe) -> tuple[str, ...]:
    train, training = recipe.train, run["training"]
    dropouts = dict.fromkeys([recipe.model.encoder.dropout, recipe.model.decoder.dropout])
    limits = {
        "epochs": train.max_epochs, "steps": train.max_steps, "minutes": round(train.max_minutes)
    }  # fmt: skip
    return (
        run["name"],
        f"{recipe.data.source.vocab_size:,}",
        f"{recipe.data.batch.max_tokens * train.accumulate:,}",
        " / ".join(map(str, dropouts)),
        str(train.label_smoothing),
        f"{train.optimizer.learning_rate:g}, {train.schedule.kind}",
        ", ".join(f"{limit:,} {what}" for what, limit in limits.items() if limit),
        f"{training['epochs']} epochs, {training['steps']:,} steps",
        _averaging(run, train.average_last),
    )


def _averaging(run: dict[str, Any], num: int) -> str:
    """Say whether averaged weights were tested."""
    return f"last {num}" if run["is_averaged"] else "no"
