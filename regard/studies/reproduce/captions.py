"""Show, attend and tell (Xu et al. 2015) on rendered scenes, where objects are known."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.data.datasets.catalog import find_data
from regard.data.datasets.synthetic.scenes.captions import IRREGULAR_PLURALS
from regard.data.datasets.synthetic.scenes.objects import SHAPES
from regard.data.example import Example
from regard.data.splits import Splits
from regard.interpret.visualize import attention_tiles
from regard.plots.grid import Tile, sheet
from regard.runs.request import Request
from regard.studies.reproduce.findings import Findings, Plot, Relation, about, train_once

DATA = "scenes"
MODELS = {
    "soft": "xu2015-laptop",
    "hard": "xu2015-hard-laptop",
    "transformer": "vit-captions-laptop",
}
"""Recipes by what their attention is called, or who looks."""

NUM_SHOWN = 5
"""Scenes of the picture: the first of the test set with three groups of things."""

SHOWN_WORDS = {
    *SHAPES,
    *(IRREGULAR_PLURALS.get(shape, f"{shape}s") for shape in SHAPES),
    *("left", "right", "above", "below"),
}
"""Words whose looks are drawn: what is there, and how it stands to the next."""

NUM_WORDS = 5
"""So many of them are in a caption of three groups: three things and two relations."""

EXACT, BLEU, POINTING, CHANCE = "exact captions %", "BLEU-4", "pointing accuracy %", "by chance %"


def show_attend_tell(seed: int, folder: Path) -> Findings:
    """Train the captioners and see where they look.

    Args:
        seed: What the models start from; the scenes are always the same.
        folder: Where their runs go; those that it already holds for this seed are taken.
    """
    splits = find_data(DATA)
    assert isinstance(splits, Splits)
    tasks = {
        name: train_once(Request(data=(DATA,), recipe=recipe, out=folder / name), seed)
        for name, recipe in MODELS.items()
    }
    numbers = {name: _measure(task, splits.test) for name, task in tasks.items()}
    chosen = [
        one
        for one in splits.test
        if sum(word in SHOWN_WORDS for word in one.target.split()) == NUM_WORDS
    ]
    return Findings(
        title="Show, attend and tell",
        about=about("show-attend-tell"),
        numbers=numbers,
        relations=_relations(numbers),
        plots={
            f"show-attend-tell{'' if name == 'soft' else f'-{name}'}": _plot(
                name, task, chosen[:NUM_SHOWN]
            )
            for name, task in tasks.items()
        },
    )


def _measure(task: Any, test: Sequence[Example]) -> dict[str, float]:
    results = task.evaluate(test).results
    return {
        EXACT: results["accuracy"].value,
        BLEU: results["bleu4"].value,
        POINTING: results["pointing"].value,
        CHANCE: results["pointing"].detail["chance"],
    }


def _relations(numbers: dict[str, dict[str, float]]) -> tuple[Relation, ...]:
    soft, hard = numbers["soft"], numbers["hard"]
    return (
        Relation("Soft attention writes 95 of 100 captions exactly.", soft[EXACT] >= 95),
        Relation(
            "A transformer writes 95 of 100 captions exactly.", numbers["transformer"][EXACT] >= 95
        ),
        Relation("Hard attention writes most captions exactly.", hard[EXACT] > 50),
        Relation(
            "Where words look softly, their things are: four times as often as by chance.",
            soft[POINTING] >= 4 * soft[CHANCE],
        ),
        Relation(
            "Where words look hard, their things are: four times as often as by chance.",
            hard[POINTING] >= 4 * hard[CHANCE],
        ),
    )


def _plot(name: str, task: Any, examples: Sequence[Example]) -> Plot:
    """Plot a row for each scene: the image with its caption, and the attention of words."""
    answers = [best[0].text for best in task.predict([one.source for one in examples])]
    maps = task.attend(
        [Example(one.source, answer) for one, answer in zip(examples, answers, strict=True)]
    )
    tiles: list[Tile] = []
    for one, answer, found in zip(examples, answers, maps, strict=True):
        plain, *words = attention_tiles(found)
        told = [tile for tile in words if tile.caption in SHOWN_WORDS][:NUM_WORDS]
        # A caption that misses a thing leaves its place empty.
        told += [Tile(plain.image)] * (NUM_WORDS - len(told))
        tiles += [Tile(plain.image, note=answer, is_right=answer == one.target), *told]
    who = "a transformer" if name == "transformer" else f"{name} attention"
    caption = (
        f"Where {who} looks while it writes, the first {len(examples)} test scenes of "
        "three groups, unpicked. Below a picture: what the model says of it, and whether it is "
        "exact."
    )
    return Plot(sheet(tiles, columns=1 + NUM_WORDS), caption)
