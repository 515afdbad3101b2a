"""Captions of drawn scenes, and where each word looks."""

from pathlib import Path
from typing import Any

from .parts import noted, table


def write(value: dict[str, Any], folder: Path) -> str:
    """Write the page; its pictures lie beside it."""
    numbers: dict[str, dict[str, float]] = value["numbers"]
    training = value["training"]
    measures = list(next(iter(numbers.values())))
    rows = [
        (name, *(f"{row[measure]:.1f}" for measure in measures), f"{training[name]['seconds']:.0f}")
        for name, row in numbers.items()
    ]
    verdicts = [("yes" if one["holds"] else "no", one["claim"]) for one in value["relations"]]
    pictures = [
        line
        for name, caption in value["pictures"].items()
        if (folder / f"scenes-{name}.png").exists()
        for line in (f"![{caption}](scenes-{name}.png)", "", caption, "")
    ]
    return "\n".join(
        [
            "# Show, attend and tell, on drawn scenes",
            "",
            "Xu et al. 2015: convolutions turn a picture into a grid of cells, and an LSTM looks "
            "at them before each word; softly at all of them, or hard at one. Beside them, a "
            "transformer that writes. The pictures are drawn on the spot, so that every caption "
            "has one right wording and it is known which cells each word is about. No caption of "
            "the test set was seen in training.",
            "",
            table(("attention", *measures, "seconds"), rows),
            "",
            "Exact: the whole caption is right. Pointing accuracy: of the words that name a thing "
            "by size, colour or shape, how many look most at a cell that the thing reaches into.",
            "",
            *noted(value),
            *pictures,
            "## What should be seen",
            "",
            table(("holds", "relation"), verdicts),
            "",
            "## How it was made",
            "",
            f"- `{value['command']}`",
            f"- {value['hardware']}, torch {value['torch']}, commit {value['commit']}, "
            f"seed {value['seed']}",
            "- every number: [`scenes.json`](scenes.json)",
            "",
        ]
    )
