"""Guided alignment: the same model trained with and without gold links (Chen et al. 2016)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.core.files import read_json_lines
from regard.interpret.alignment import PUNCTUATION, Alignments, Gold, align, gold_of, halves
from regard.metrics.text.bleu import bleu
from regard.plots.alignment import AlignmentMap, alignment_maps
from regard.plots.inputs import Points
from regard.plots.panels import panels
from regard.runs.folder import TRAINING_LOG
from regard.studies.reproduce.attention.alignments import (
    BAHDANAU,
    RECURRENT,
    TINY,
    TRANSFORMER,
    draw,
    shown,
    train_model,
    write_pairs,
)
from regard.studies.reproduce.findings import Claim, Findings, Plot

NUM_TRAIN = 3_000
WEIGHT = 0.2
MARGIN = 2
"""Difference in BLEU that 200 test pairs can show."""
MODELS = {BAHDANAU: RECURRENT, TINY: TRANSFORMER}
LEARNED, GUIDED = "learned", "guided"
WAYS = {LEARNED: (), GUIDED: (f"alignment.weight={WEIGHT}",)}
AER, BLEU = "AER", "BLEU"
MAP_CAPTION = (
    "Attention weights of one test pair, of the head with the smallest AER on the first half of "
    "the test pairs; white is 0, the darkest blue 1. Orange: gold links."
)


def guided_alignment(seed: int, folder: Path) -> Findings:
    """Train both models with and without links, and compare alignments and translations.

    Args:
        seed: Seed of the models; the sentences are always the same.
        folder: Folder of the runs.
    """
    _, test = write_pairs(folder, NUM_TRAIN)
    gold = gold_of(test)
    assert gold is not None
    maps: dict[str, AlignmentMap] = {}
    curves: dict[str, dict[str, Points]] = {}
    numbers: dict[str, dict[str, float | str]] = {}
    for model, recipe in MODELS.items():
        for way, settings in WAYS.items():
            out = folder / f"{model.split()[-1].lower()}-{way}"
            task = train_model(recipe, seed, out, more=settings)
            curves.setdefault(model, {})[way] = read_curve(out.with_name(f"{out.name}-{seed}"))
            aligned = align(task, test, split=PUNCTUATION)
            head = aligned.select(gold, halves(len(test))[0])
            maps[f"{model}, {way}: {head}"] = draw(task, shown(test, 1)[0], head)
            translated = task.translate([example.source for example in test])
            score = bleu(translated, [[example.target] for example in test])
            numbers[f"{model}, {way}"] = {**describe(aligned, gold), BLEU: score.value}
    return Findings(
        tables={"With and without links": numbers},
        claims=_claims(numbers),
        plots={
            "guided-alignment": Plot(alignment_maps(maps), MAP_CAPTION),
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


def _claims(numbers: Mapping[str, Mapping[str, Any]]) -> tuple[Claim, ...]:
    aligns = [_aligns_better(model, numbers) for model in MODELS]
    recurrent, transformer = (
        tuple(float(numbers[f"{model}, {way}"][BLEU]) for way in WAYS) for model in MODELS
    )
    return (
        *aligns,
        Claim(
            f"{BAHDANAU}: the loss on the links costs no BLEU (at most {MARGIN} points).",
            _compare(*recurrent),
            recurrent[1] > recurrent[0] - MARGIN,
        ),
        Claim(
            f"{TINY}: guided attention translates better, by more than {MARGIN} BLEU.",
            _compare(*transformer),
            transformer[1] > transformer[0] + MARGIN,
        ),
    )


def _aligns_better(model: str, numbers: Mapping[str, Mapping[str, Any]]) -> Claim:
    learned, guided = (numbers[f"{model}, {way}"][AER] for way in WAYS)
    return Claim(
        f"{model}: guided attention aligns better.",
        f"AER {guided:.3f} guided, {learned:.3f} learned",
        guided < learned,
    )


def _compare(learned: float, guided: float) -> str:
    return f"BLEU {guided:.1f} guided, {learned:.1f} learned"


def _curves(curves: Mapping[str, Mapping[str, Points]]) -> Plot:
    figure = panels(curves, x_label="step", y_label="validation BLEU", columns=2)
    return Plot(figure, "Validation BLEU during training, with and without gold links.")
