"""Show, attend and tell (Xu et al. 2015) on rendered scenes with known objects."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.data.datasets.catalog import find_data
from regard.data.datasets.synthetic.scenes.captions import IRREGULAR_PLURALS
from regard.data.datasets.synthetic.scenes.objects import SHAPES
from regard.data.example import Example
from regard.data.splits import Splits
from regard.plots.grid import Tile, sheet
from regard.runs.request import Request
from regard.studies.reproduce.findings import Claim, Findings, Plot
from regard.studies.reproduce.running import train_run
from regard.tasks.attention_plots import attention_tiles

DATA = "scenes"
MODELS = {
    "soft": "xu2015-laptop",
    "hard": "xu2015-hard-laptop",
    "transformer": "vit-captions-laptop",
}
"""Recipes by the kind of attention or model."""

NUM_SHOWN = 5
"""Number of scenes in the plot: the first of the test set with three groups of objects."""

SHOWN_WORDS = {
    *SHAPES,
    *(IRREGULAR_PLURALS.get(shape, f"{shape}s") for shape in SHAPES),
    *("left", "right", "above", "below"),
}
"""Words whose attention is plotted: shapes and relative positions."""

NUM_WORDS = 5
"""Number of these words in a caption of three groups: three shapes and two relations."""

EXACT, BLEU, POINTING, CHANCE = "exact captions %", "BLEU-4", "pointing accuracy %", "by chance %"


def show_attend_tell(seed: int, folder: Path) -> Findings:
    """Train captioning models and compare their attention with the objects.

    Args:
        seed: Seed of the models; the scenes are always the same.
        folder: Folder of the runs.
    """
    splits = find_data(DATA)
    assert isinstance(splits, Splits)
    tasks = {
        name: train_run(Request(data=(DATA,), recipe=recipe, out=folder / name), seed)
        for name, recipe in MODELS.items()
    }
    numbers = {name: _measure(task, splits.test) for name, task in tasks.items()}
    chosen = [
        example
        for example in splits.test
        if sum(word in SHOWN_WORDS for word in example.target.split()) == NUM_WORDS
    ]
    return Findings(
        tables={"Captions of the test set": numbers},
        claims=_claims(numbers),
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


def _claims(numbers: dict[str, dict[str, float]]) -> tuple[Claim, ...]:
    soft, hard, transformer = (numbers[name] for name in MODELS)
    return (
        Claim(
            "Soft attention: at least 95 % of captions are exact.",
            f"{soft[EXACT]:.1f} %",
            soft[EXACT] >= 95,
        ),
        Claim(
            "Transformer: at least 95 % of captions are exact.",
            f"{transformer[EXACT]:.1f} %",
            transformer[EXACT] >= 95,
        ),
        Claim("Hard attention: most captions are exact.", f"{hard[EXACT]:.1f} %", hard[EXACT] > 50),
        *(
            Claim(
                f"{name.title()} attention points to the named object at least four times as often "
                "as chance.",
                f"{row[POINTING]:.1f} %, by chance {row[CHANCE]:.1f} %",
                row[POINTING] >= 4 * row[CHANCE],
            )
            for name, row in (("soft", soft), ("hard", hard))
        ),
    )


def _plot(name: str, task: Any, examples: Sequence[Example]) -> Plot:
    """Plot a row for each scene: the image with its caption, and the attention of words."""
    sources = [example.source for example in examples]
    captions = [predictions[0].text for predictions in task.predict(sources)]
    maps = task.attend([Example(*pair) for pair in zip(sources, captions, strict=True)])
    tiles: list[Tile] = []
    for example, caption, attention in zip(examples, captions, maps, strict=True):
        plain, *words = attention_tiles(attention)
        shown = [tile for tile in words if tile.caption in SHOWN_WORDS][:NUM_WORDS]
        # Captions with fewer words are padded with the plain image.
        shown += [Tile(plain.image)] * (NUM_WORDS - len(shown))
        is_right = caption == example.target
        tiles += [Tile(plain.image, note=caption, is_right=is_right), *shown]
    model = "a transformer" if name == "transformer" else f"{name} attention"
    note = (
        f"Attention weights of {model} on the first {len(examples)} test scenes with three groups, "
        "not selected. Below an image: the generated caption, and whether it is exact."
    )
    return Plot(sheet(tiles, columns=1 + NUM_WORDS), note)
