"""Show, attend and tell (Xu et al. 2015) on rendered images with known objects."""

from collections.abc import Collection, Mapping, Sequence
from itertools import compress, islice
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.datasets.catalog import find_data
from regard.data.datasets.synthetic.scenes import find_scene
from regard.data.datasets.synthetic.scenes.objects import COLOURS, PAIR_RADII, SHAPES
from regard.data.example import Example
from regard.data.splits import Splits
from regard.plots.grid import Tile, sheet
from regard.runs.request import Request
from regard.studies.reproduce.findings import Claim, Findings, Plot
from regard.studies.reproduce.running import train_run
from regard.tasks.attention_plots import attention_tiles

DATA = "scenes:pairs,3000"
SETTINGS = (
    # Four stages of stride 2: cells of 16 pixels, so that the grid has 3 rows and columns.
    *("data.source.size=48", "data.source.augmentation.crop=0"),
    *("model.encoder.grid.widths=[8,16,32,48]", "model.encoder.grid.blocks=[1,1,1,1]"),
    *("model.encoder.num_layers=1", "train.validate_every=400", "search.beams=1"),
)
"""Overrides of both recipes, which make the models smaller."""
MODELS: dict[str, tuple[str, tuple[str, ...]]] = {
    "soft": ("xu2015-laptop", ("train.max_steps=500",)),
    "hard": (
        "xu2015-hard-laptop",
        (
            *("train.max_steps=800", "train.optimizer.learning_rate=0.01"),
            # Half of the steps, as in the recipe.
            "model.decoder.soft_steps=400",
        ),
    ),
}
"""Recipes and overrides by the kind of attention."""

NUM_SHOWN = 3
"""Number of images in the plot."""

LIGHT = 128
"""Minimum grey level of a light background."""

RELATIONS = ("left", "right", "above", "below")
SHOWN_WORDS = {*SHAPES, *COLOURS, *PAIR_RADII, *RELATIONS}
"""Words whose attention is plotted."""

EXACT, BLEU, POINTING, CHANCE = "exact captions %", "BLEU-4", "pointing accuracy %", "by chance %"
LARGEST = "mean largest weight"


def show_attend_tell(seed: int, folder: Path) -> Findings:
    """Train captioning models and compare their attention with the objects.

    Args:
        seed: Seed of the models; the images are always the same.
        folder: Folder of the runs.
    """
    splits = find_data(DATA)
    assert isinstance(splits, Splits)
    test = splits.test
    tasks = {
        name: train_run(
            Request(data=(DATA,), recipe=recipe, settings=(*SETTINGS, *own), out=folder / name),
            seed,
        )
        for name, (recipe, own) in MODELS.items()
    }
    numbers = {name: measure_captions(task, test) for name, task in tasks.items()}
    return Findings(
        tables={"Captions of the test set": numbers},
        claims=_claims(numbers),
        plots={"show-attend-tell": attention_rows(tasks, choose_shown(test), SHOWN_WORDS)},
    )


def choose_shown(test: Sequence[Example]) -> list[Example]:
    """Return the first test images with a light background, on which maps are easier to see."""
    is_light = (find_scene(example.source).background.level >= LIGHT for example in test)
    return list(islice(compress(test, is_light), NUM_SHOWN))


def measure_captions(task: Any, test: Sequence[Example]) -> dict[str, float]:
    """Return the quality of captions, and how well and how sharply words attend."""
    results = task.evaluate(test).results
    return {
        EXACT: results["accuracy"].value,
        BLEU: results["bleu4"].value,
        POINTING: results["pointing"].value,
        CHANCE: results["pointing"].detail["chance"],
        LARGEST: _largest_weight(task, test),
    }


def _largest_weight(task: Any, test: Sequence[Example]) -> float:
    """Return the mean over words of the largest weight of a cell."""
    largest = [one.mean()[:-1].amax(-1).numpy() for one in task.attend(test)]
    return float(np.concatenate(largest).mean())


def _claims(numbers: dict[str, dict[str, float]]) -> tuple[Claim, ...]:
    soft, hard = numbers["soft"], numbers["hard"]
    return (
        *(
            Claim(
                f"With {name} attention, the model learns to caption: at least 90 % of new "
                "captions are exact.",
                f"{row[EXACT]:.1f} %",
                row[EXACT] >= 90,
            )
            for name, row in numbers.items()
        ),
        *(
            Claim(
                f"{name.title()} attention points to the named object at least four times as often "
                "as chance, without any labels of positions.",
                f"{row[POINTING]:.1f} %, by chance {row[CHANCE]:.1f} %",
                row[POINTING] >= 4 * row[CHANCE],
            )
            for name, row in numbers.items()
        ),
        Claim(
            "Soft attention spreads its weight over the cells; hard attention selects one.",
            f"mean largest weight {soft[LARGEST]:.2f} and {hard[LARGEST]:.2f}",
            soft[LARGEST] < 0.99 < hard[LARGEST],
        ),
    )


def attention_rows(
    tasks: Mapping[str, Any], examples: Sequence[Example], shown_words: Collection[str]
) -> Plot:
    """Plot the attention of words of the same caption, one row for each image and model.

    Args:
        tasks: Captioning models by name.
        examples: Images with captions.
        shown_words: Words whose attention is plotted.
    """
    tiles: list[Tile] = []
    maps = {name: task.attend(examples) for name, task in tasks.items()}
    num_words = max(
        sum(word in shown_words for word in example.target.split()) for example in examples
    )
    for number, example in enumerate(examples):
        for name, attention in maps.items():
            plain, *words = attention_tiles(attention[number])
            shown = [tile for tile in words if tile.caption in shown_words]
            shown += [Tile(plain.image)] * (num_words - len(shown))
            tiles += [Tile(plain.image, caption=name, note=example.target), *shown]
    caption = (
        f"Attention weights for words of the same caption, one row per model ({', '.join(tasks)}), "
        f"on the first {len(examples)} test images of their kind, not selected by result; bright "
        "where large."
    )
    return Plot(sheet(tiles, columns=1 + num_words), caption)
