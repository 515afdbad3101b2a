"""Figures below the cells of a notebook."""

import io
from dataclasses import dataclass

from matplotlib.figure import Figure

from regard.plots.figure import style

DPI = 100
"""Dots per inch of the images, so that a figure is as wide as the text of a notebook."""


@dataclass(frozen=True, repr=False)
class InlineFigure:
    """A figure that a notebook shows as an image.

    Figures of this package are made without `pyplot`, so a notebook shows only their names unless
    its plotting backend is set up.
    """

    figure: Figure

    def __repr__(self) -> str:
        width, height = self.figure.get_size_inches()
        return f"InlineFigure({width:.1f} × {height:.1f} inches)"

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        # Without the version of matplotlib, equal figures give equal files.
        with style():
            self.figure.savefig(
                buffer, format="png", dpi=DPI, facecolor="white", metadata={"Software": None}
            )
        return buffer.getvalue()


def show(figure: Figure) -> InlineFigure:
    """Return a figure as the value of a notebook's cell, shown as an image below it."""
    return InlineFigure(figure)


if __name__ == "__main__":
    demo = Figure(figsize=(3, 2))
    demo.add_subplot().plot([0, 1, 4, 9])
    print(show(demo), len(show(demo)._repr_png_()), "bytes")
