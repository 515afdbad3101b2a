"""Show, attend and tell (Xu et al. 2015) on drawn scenes, where every word's place is known."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.data.datasets.catalog import find_data
from regard.data.datasets.synthetic.scenes.captions import TOGETHER
from regard.data.datasets.synthetic.scenes.things import SHAPES
from regard.data.example import Example
from regard.data.splits import Splits
from regard.interpret.attention_tiles import look_through
from regard.plots.grid import Tile, sheet
from regard.runs import folder as runs
from regard.runs.request import Request
from regard.runs.train import train
from regard.studies.reproduce.findings import Findings, Picture, Relation

DATA = "scenes"
MODELS = {
    "soft": "xu2015-laptop",
    "hard": "xu2015-hard-laptop",
    "transformer": "vit-captions-laptop",
}
"""Recipes by what their attention is called, or who looks."""

NUM_SHOWN = 5
"""Scenes of the picture: the first of the test set with three groups of things."""

TELLING = {
    *SHAPES,
    *(TOGETHER.get(shape, f"{shape}s") for shape in SHAPES),
    *("left", "right", "above", "below"),
}
"""Words whose looks are drawn: what is there, and how it stands to the next."""

NUM_TELLING = 5
"""So many of them are in a caption of three groups: three things and two relations."""

EXACT, BLEU, POINTING, CHANCE = "exact captions %", "BLEU-4", "pointing accuracy %", "by chance %"

_ABOUT = (
    "Pictures of one to six coloured shapes, drawn on the spot, and one right caption each: what "
    "is there and how it stands to the next. Convolutions turn a picture into a grid of cells; an "
    "LSTM writes the caption and looks at the cells before each word: at all of them, weighted "
    "(soft), or at one of them (hard), which is learned by reward. Beside it, a transformer that "
    "writes. No caption of the test set was seen in training. Exact: the whole caption is right, "
    "word for word. Pointing accuracy: of the words that name a thing by size, colour or shape, "
    "how many look most at a cell that the thing reaches into; by chance: how many would if every "
    "cell were as likely."
)


def show_attend_tell(seed: int, folder: Path) -> Findings:
    """Train the captioners and see where they look.

    Args:
        seed: What the models start from; the scenes are always the same.
        folder: Where their runs go; those that it already holds for this seed are taken.
    """
    splits = find_data(DATA)
    assert isinstance(splits, Splits)
    tasks = {name: _learn(name, seed, folder) for name in MODELS}
    numbers = {name: _measure(task, splits.test) for name, task in tasks.items()}
    chosen = [
        one
        for one in splits.test
        if sum(word in TELLING for word in one.target.split()) == NUM_TELLING
    ]
    return Findings(
        title="Show, attend and tell",
        about=_ABOUT,
        numbers=numbers,
        relations=_relations(numbers),
        pictures={
            f"show-attend-tell{'' if name == 'soft' else f'-{name}'}": _draw(
                name, task, chosen[:NUM_SHOWN]
            )
            for name, task in tasks.items()
        },
    )


def _learn(name: str, seed: int, folder: Path) -> Any:
    out = folder / f"{name}-{seed}"
    if (out / runs.METRICS).exists():
        return runs.load_one(out)
    request = Request(data=(DATA,), recipe=MODELS[name], settings=(f"seed={seed}",), out=out)
    return train(request.going_on()).predictor


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


def _draw(name: str, task: Any, examples: Sequence[Example]) -> Picture:
    """Draw a row for each scene: the picture with what is said of it, and where words look."""
    answers = [best[0].text for best in task.predict([one.source for one in examples])]
    maps = task.attend(
        [Example(one.source, answer) for one, answer in zip(examples, answers, strict=True)]
    )
    tiles: list[Tile] = []
    for one, answer, found in zip(examples, answers, maps, strict=True):
        plain, *words = look_through(found)
        told = [tile for tile in words if tile.caption in TELLING][:NUM_TELLING]
        # A caption that misses a thing leaves its place empty.
        told += [Tile(plain.image)] * (NUM_TELLING - len(told))
        tiles += [Tile(plain.image, note=answer, is_right=answer == one.target), *told]
    who = "a transformer" if name == "transformer" else f"{name} attention"
    caption = (
        f"Where {who} looks while it writes, the first {len(examples)} test scenes of "
        "three groups, unpicked. Below a picture: what the model says of it, and whether it is "
        "exact."
    )
    return Picture(sheet(tiles, columns=1 + NUM_TELLING), caption)
