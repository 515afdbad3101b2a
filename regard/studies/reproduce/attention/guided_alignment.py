"""Guided alignment: the same model trained with and without gold links (Chen et al. 2016)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.core.files import read_json_lines
from regard.interpret.alignment import PUNCTUATION, Alignments, Gold, align, gold_of, halves
from regard.metrics.text.bleu import bleu
from regard.plots.alignment import alignment_maps
from regard.plots.inputs import Points
from regard.plots.panels import panels
from regard.runs.folder import TRAINING_LOG
from regard.studies.reproduce.attention.alignments import (
    RECURRENT,
    TRANSFORMER,
    draw,
    shown,
    train_model,
    write_pairs,
)
from regard.studies.reproduce.findings import Claim, Findings, Plot

NUM_TRAIN = 3_000
WEIGHT = 0.2
MODELS = {"Bahdanau": RECURRENT, "tiny Transformer": TRANSFORMER}
LEARNED, GUIDED = "learned", "guided"
WAYS = {LEARNED: (), GUIDED: (f"alignment.weight={WEIGHT}",)}
AER, BLEU = "AER", "BLEU"


def guided_alignment(seed: int, folder: Path) -> Findings:
    """Train both models with and without links, and compare alignments and translations.

    Args:
        seed: Seed of the models; the sentences are always the same.
        folder: Folder of the runs.
    """
    _, test = write_pairs(folder, NUM_TRAIN)
    gold = gold_of(test)
    assert gold is not None
    tasks: dict[tuple[str, str], Any] = {}
    curves: dict[str, dict[str, Points]] = {}
    numbers: dict[str, dict[str, float | str]] = {}
    for model, recipe in MODELS.items():
        for way, settings in WAYS.items():
            out = folder / f"{model.split()[-1].lower()}-{way}"
            task = tasks[model, way] = train_model(recipe, seed, out, more=settings)
            curves.setdefault(model, {})[way] = read_curve(out.with_name(f"{out.name}-{seed}"))
            translated = task.translate([example.source for example in test])
            score = bleu(translated, [[example.target] for example in test])
            numbers[f"{model}, {way}"] = {
                **describe(align(task, test, split=PUNCTUATION), gold),
                BLEU: score.value,
            }
    return Findings(
        tables={"With and without links": numbers},
        claims=tuple(claim for model in MODELS for claim in _claims(model, numbers)),
        plots={
            "guided-alignment": _maps(tasks, shown(test, 1)[0]),
            "guided-alignment-bleu": _curves(curves),
        },
    )


def describe(aligned: Alignments, gold: Gold) -> dict[str, float | str]:
    """Return the AER of the head selected on the first half of the pairs, on the second half."""
    select, report = halves(len(gold.sure))
    best = aligned.select(gold, select)
    found = gold.rows(report).error_rate(aligned.links[best][report])
    return {"head": str(best), AER: found.value, **found.detail}


def read_curve(folder: Path) -> Points:
    """Return validation BLEU by step from the training log of a run."""
    lines = read_json_lines(folder / TRAINING_LOG)
    return [(line["step"], line["bleu"]) for line in lines if line["kind"] == "valid"]


def _claims(model: str, numbers: Mapping[str, Mapping[str, Any]]) -> tuple[Claim, ...]:
    learned, guided = (numbers[f"{model}, {way}"] for way in WAYS)
    return (
        Claim(
            f"{model}: guided attention aligns better.",
            f"AER {guided[AER]:.3f} guided, {learned[AER]:.3f} learned",
            guided[AER] < learned[AER],
        ),
        Claim(
            f"{model}: guided attention translates better.",
            f"BLEU {guided[BLEU]:.1f} guided, {learned[BLEU]:.1f} learned",
            guided[BLEU] > learned[BLEU],
        ),
    )


def _maps(tasks: Mapping[tuple[str, str], Any], example: Any) -> Plot:
    maps = {f"{model}, {way}": draw(task, example) for (model, way), task in tasks.items()}
    caption = (
        "Attention weights of one test pair, mean over layers and heads; white is 0, the darkest "
        "blue 1. Orange: gold links. Of the Transformer, one head of the first layer is guided."
    )
    return Plot(alignment_maps(maps), caption)


def _curves(curves: Mapping[str, Mapping[str, Points]]) -> Plot:
    figure = panels(curves, x_label="step", y_label="validation BLEU", columns=2)
    return Plot(figure, "Validation BLEU during training, with and without gold links.")
