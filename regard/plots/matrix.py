"""Tables of numbers as images: weights between many points, position vectors."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from regard.core.errors import DataError
from regard.plots.figure import style, to_svg
from regard.plots.labels import clean
from regard.plots.weights import greatest

_PANEL = 3.1


def matrices(
    panels: Mapping[str, ArrayLike], *, x_label: str, y_label: str, aspect: float = 1.0
) -> Figure:
    """Draw tables side by side, each with its own scale: rows downwards, columns to the right.

    Tables without a negative number run from white to blue, others from red over white to blue.

    Args:
        panels: (L, K) by title; a title may be empty.
        x_label: What the columns are.
        y_label: What the rows are.
        aspect: Width of a panel over its height.
    """
    tables = {title: _check(table) for title, table in panels.items()}
    if not tables:
        raise DataError("There is nothing to draw: `panels` must hold at least one table.")
    with style():
        width = _PANEL * aspect + 0.9
        canvas = Figure(figsize=(width * len(tables), _PANEL + 0.6), layout="constrained")
        drawn = canvas.subplots(1, len(tables), squeeze=False)[0]
        for axes, (title, table) in zip(drawn, tables.items(), strict=True):
            most = greatest(np.abs(table))
            is_signed = bool(table.min() < 0)
            image = axes.imshow(
                table,
                cmap="RdBu" if is_signed else "Blues",
                vmin=-most if is_signed else 0,
                vmax=most,
                aspect="auto",
                interpolation="nearest",
            )
            axes.set_box_aspect(1 / aspect)
            axes.set_title(clean(title), loc="left", fontsize=11)
            axes.set_xlabel(clean(x_label))
            axes.tick_params(length=3)
            axes.spines[:].set(visible=True, color="#d5dbe1")
            bar = canvas.colorbar(image, ax=axes, shrink=0.8, aspect=24, pad=0.03)
            bar.outline.set_visible(False)
            bar.ax.tick_params(length=0)
            bar.ax.yaxis.set_major_locator(MaxNLocator(5))
        drawn[0].set_ylabel(clean(y_label))
    return canvas


def _check(table: ArrayLike) -> NDArray[Any]:
    array = np.asarray(table, dtype=float)
    if array.ndim != 2 or not array.size:
        raise DataError(f"A table must have rows and columns, but has the shape {array.shape}.")
    if not np.isfinite(array).all():
        raise DataError("A table must hold finite numbers, but some are infinite or NaN.")
    return array


if __name__ == "__main__":
    places = np.arange(12.0)
    near = np.exp(-((places[:, None] - places) ** 2))
    print(to_svg(matrices({"near": near}, x_label="keys", y_label="queries")))
