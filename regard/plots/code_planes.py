"""Items as dots on planes side by side, coloured by label: what a code of two numbers keeps."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from regard.core.errors import DataError
from regard.plots.figure import COLOURS, style, to_svg
from regard.plots.labels import clean

MOST_DOTS = 2_000
"""Dots of a plane; of more items, evenly many are left out."""

_MARKERS = "o^s"
_SIDE = 4.2
_LETTER, _LINE = 0.05, 0.1
"""A letter's width and a line's height, as shares of half an axis."""
_WHITE: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1.0}


def planes(
    places: Mapping[str, ArrayLike], labels: Sequence[str], *, notes: Mapping[str, str]
) -> Figure:
    """Draw the same items on several planes with the same axes.

    Each plane is moved to its middle and divided by how far its dots lie from there on average, so
    that neither is larger; its own shape stays.

    Args:
        places: For each plane the places of all items, (B, 2).
        labels: What each item is.
        notes: A line above each plane.
    """
    spread = {name: _scale(np.asarray(found, np.float64)) for name, found in places.items()}
    for name, found in spread.items():
        if found.shape != (len(labels), 2) or not len(labels):
            raise DataError(
                f"Each of {len(labels):,} items must have two numbers on the plane '{name}', but "
                f"their shape is {found.shape}."
            )
    drawn = np.linspace(0, len(labels) - 1, min(MOST_DOTS, len(labels))).astype(int)
    named = np.array(labels)
    reach = 1.06 * max(np.abs(found[drawn]).max() for found in spread.values())
    with style():
        figure = Figure(figsize=(_SIDE * len(spread), _SIDE + 0.3), layout="constrained")
        for axes, (name, found) in zip(
            np.atleast_1d(figure.subplots(1, len(spread), sharex=True, sharey=True)),
            spread.items(),
            strict=True,
        ):
            axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
            axes.set_title(clean(name), loc="left", fontweight="bold", pad=20)
            axes.text(0, 1.01, clean(notes.get(name, "")), transform=axes.transAxes, va="bottom")
            axes.grid()
            _draw(axes, found[drawn], named[drawn])
    return figure


def _scale(found: NDArray[np.float64]) -> NDArray[np.float64]:
    centred = found - found.mean(0)
    distance = np.sqrt((centred**2).sum(-1).mean())
    scaled: NDArray[np.float64] = centred / max(distance, 1e-12)
    return scaled


def _draw(axes: Axes, found: NDArray[np.float64], labels: NDArray[np.str_]) -> None:
    """Draw the dots of every label, and its name amidst them: more colours nobody can tell."""
    names = sorted(set(labels.tolist()))
    for number, name in enumerate(names):
        own = found[labels == name]
        axes.scatter(
            own[:, 0],
            own[:, 1],
            s=7,
            marker=_MARKERS[number // len(COLOURS) % len(_MARKERS)],
            color=COLOURS[number % len(COLOURS)],
            alpha=0.55,
            linewidths=0,
            # Thousands of dots are smaller as pixels than as drawings.
            rasterized=True,
        )
    middles = {name: np.median(found[labels == name], axis=0) for name in names}
    reach = float(axes.get_xlim()[1])
    for number, (name, (x, y)) in enumerate(_part(middles, reach).items()):
        colour = COLOURS[number % len(COLOURS)]
        words = axes.text(x, y, clean(name), ha="center", va="center", bbox=_WHITE)
        words.set(color=colour, fontsize=9, fontweight="bold")


def _part(
    places: Mapping[str, NDArray[np.float64]], reach: float
) -> dict[str, NDArray[np.float64]]:
    """Return places of names, moved up as far as they must be not to cover each other."""
    parted: dict[str, NDArray[np.float64]] = {}
    for name in sorted(places, key=lambda name: float(places[name][1])):
        x, y = places[name]
        for other, (other_x, other_y) in parted.items():
            width = _LETTER * reach * (len(name) + len(other)) / 2
            if abs(x - other_x) < width and y - other_y < _LINE * reach:
                y = max(y, other_y + _LINE * reach)
        parted[name] = np.array([x, y])
    return {name: parted[name] for name in places}


if __name__ == "__main__":
    turn = np.linspace(0, 6, 60)
    ring = np.stack([np.cos(turn), np.sin(turn)], axis=-1)
    halves = ["upper" if y > 0 else "lower" for _, y in ring]
    print(to_svg(planes({"round": ring, "flat": ring * [1, 0.2]}, halves, notes={})))
