"""Sound as a picture: its frequencies over time, and when each word of the answer is heard."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from rich.text import Text

from regard.core.errors import DataError
from regard.plots import figure, terminal
from regard.plots.inputs import Pixels, check_weights, clean, greatest, label

Floats = NDArray[np.floating[Any]]

LINES = 10
"""Lines of a terminal that a spectrogram takes."""

_LETTER = 0.12
"""How wide a letter of a label is, in inches, with some room."""

_LOUD = 0.5
"""A word is heard where its weight is at least this share of its greatest."""


@dataclass(frozen=True)
class Hearing:
    """A recording as it was heard, and when each word of an answer was."""

    frames: Floats
    """(F, M), log-mel."""
    seconds: float
    """How long the recording is."""
    words: tuple[str, ...]
    """The answer's."""
    roads: Mapping[str, Floats]
    """By the name of what tells it: words x positions, the positions evenly over time."""
    step: float
    """Seconds from one position to the next."""

    def __post_init__(self) -> None:
        if self.frames.ndim != 2 or not self.frames.size or not np.isfinite(self.frames).all():
            raise DataError(
                "`frames` must be finite numbers of frames and mel bins, but have the shape "
                f"{self.frames.shape}."
            )
        for weights in self.roads.values():
            check_weights(weights, self.words, ["?"] * np.shape(weights)[-1])


def spans(weights: ArrayLike) -> list[tuple[int, int] | None]:
    """Return where each word is heard: the stretch around its greatest weight, end excluded.

    Args:
        weights: (T, S). A word without weight, such as the end token, is nowhere.
    """
    found: list[tuple[int, int] | None] = []
    for row in np.asarray(weights, dtype=float):
        is_loud = row >= _LOUD * row.max()
        first = last = int(row.argmax())
        while first > 0 and is_loud[first - 1]:
            first -= 1
        while last + 1 < len(row) and is_loud[last + 1]:
            last += 1
        found.append((first, last + 1) if row.max() > 0 else None)
    return found


def draw(heard: Hearing, *, title: str = "") -> Figure:
    """Draw frequencies over time, for each road once, with the stretches where words are heard.

    Below each stand the weights themselves, a line a word, on the same time.

    Args:
        heard: What was heard, and when.
        title: A line above.
    """
    heights = (1.5, 0.17 * len(heard.words) + 0.1)
    height = len(heard.roads) * (sum(heights) + 1.0) + 0.6
    with figure.style():
        canvas = Figure(figsize=(_width(heard), height))
        canvas.suptitle(clean(title), x=0.02, ha="left", fontweight="bold", fontsize=12)
        rows = canvas.add_gridspec(len(heard.roads), 1, hspace=0.5, top=1 - 1.05 / height)
        for number, (name, weights) in enumerate(heard.roads.items()):
            pair = rows[number].subgridspec(2, 1, height_ratios=heights, hspace=0.1)
            upper, lower = (canvas.add_subplot(pair[place]) for place in (0, 1))
            _draw_frames(upper, heard)
            _draw_spans(upper, heard, spans(weights))
            upper.set_title(clean(name), loc="left", fontsize=10, pad=30)
            _draw_weights(lower, heard, weights)
            lower.set_xlabel("seconds")
    return canvas


def save(path: Path, heard: Hearing, *, title: str = "") -> None:
    """Save the picture in the format that the file name ends in: `.png`, `.svg` or `.html`."""
    figure.save(path, draw(heard, title=title), title=title)


def in_terminal(heard: Hearing, *, has_colour: bool = True, width: int | None = None) -> Text:
    """Draw frequencies over time, and below them for each road when each word is heard.

    Args:
        heard: What was heard, and when.
        has_colour: Whether the terminal has; otherwise shades stand for loudness.
        width: Cells of a line; the terminal's own width if not given.
    """
    names = [label(word) for word in heard.words]
    margin = max(map(len, names)) + 1
    cells = max(10, terminal.line_width(width) - margin - 1)
    lines = [
        Text(" " * margin).append_text(line)
        for line in terminal.stretch(_pixels(heard.frames), cells, LINES, has_colour=has_colour)
    ]
    for road, weights in heard.roads.items():
        lines.append(Text(f"{' ' * margin}{clean(road)}", "dim"))
        # Each cell shows the position that its middle falls on.
        times = (np.arange(cells) + 0.5) / cells * heard.seconds
        places = np.minimum((times / heard.step).astype(int), weights.shape[1] - 1)
        for name, row in zip(names, weights[:, places] / greatest(weights), strict=True):
            line = Text(f"{name:>{margin - 1}} ")
            lines.append(line.append_text(terminal.strip(row)))
    last = f"{heard.seconds:.2f} s"
    lines.append(Text(f"{' ' * margin}0{' ' * (cells - 1 - len(last))}{last}", "dim"))
    return Text("\n", no_wrap=True, overflow="ignore").join(lines)


def _width(heard: Hearing) -> float:
    """Return how wide a drawing is, in inches."""
    return min(24.0, max(6.0, 2.2 * heard.seconds))


def _pixels(frames: Floats) -> Pixels:
    """Paint log-mel frames (F, M) as an image, low frequencies at its foot."""
    low, high = np.percentile(frames, [5, 99.5])
    strength = ((frames - low) / max(high - low, 1e-6)).clip(0, 1)
    painted: Floats = 255 * colormaps["magma"](strength.T[::-1])[..., :3]  # (M, F, 3)
    return painted.round().astype(np.uint8)


def _draw_frames(axes: Axes, heard: Hearing) -> None:
    num_bins = heard.frames.shape[1]
    edges = (0, heard.seconds, 0, num_bins)
    axes.imshow(_pixels(heard.frames), extent=edges, aspect="auto", interpolation="none")
    axes.set_ylabel("mel bin")
    axes.set_xlim(0, heard.seconds)
    axes.tick_params(labelbottom=False)


def _draw_spans(axes: Axes, heard: Hearing, found: Sequence[tuple[int, int] | None]) -> None:
    num_bins = heard.frames.shape[1]
    letter = _LETTER * heard.seconds / _width(heard)
    taken = [0.0, 0.0]  # how far each line of labels is written
    for number, (word, span) in enumerate(zip(heard.words, found, strict=True)):
        if span is None:
            continue
        colour = figure.colour(number)
        first, last = (min(place * heard.step, heard.seconds) for place in span)
        for place in (first, last):
            axes.axvline(place, color="white", linewidth=0.8, alpha=0.8)
        axes.plot([first, last], [num_bins] * 2, color=colour, linewidth=5, clip_on=False)
        name = label(word)
        middle, half = (first + last) / 2, letter * len(name) / 2
        line = 0 if middle - half >= taken[0] else 1
        taken[line] = middle + half
        above = num_bins * (1.05 + 0.12 * line)
        axes.text(middle, above, name, color=colour, ha="center", va="bottom", fontsize=9)


def _draw_weights(axes: Axes, heard: Hearing, weights: Floats) -> None:
    num_words, num_places = weights.shape
    edges = (0, num_places * heard.step, num_words, 0)
    look: dict[str, Any] = {"cmap": "Blues", "vmin": 0, "vmax": greatest(weights)}
    axes.imshow(weights, extent=edges, aspect="auto", interpolation="none", **look)
    labels = [label(word) for word in heard.words]
    axes.set_yticks(np.arange(num_words) + 0.5, labels, fontsize=8)
    axes.tick_params(left=False)
    axes.set_xlim(0, heard.seconds)


if __name__ == "__main__":
    chance = np.random.default_rng(0).random((120, 40)) / 4
    chance[20:50, 5:12] += 1
    chance[70:100, 20:30] += 1
    roads = {"attention": np.eye(2).repeat(15, axis=1), "CTC": np.eye(2).repeat(15, axis=1) * 0.5}
    demo = Hearing(chance, 1.2, ("low", "high"), roads, step=0.04)
    print(in_terminal(demo).plain)
