"""Spectrograms with the time span of each word, from attention weights or CTC."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.text import Text

from regard.core.errors import DataError
from regard.core.terminal import clean
from regard.plots import figure, terminal
from regard.plots.inputs import Pixels, check_weights, find_vmax, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.floating[Any]]

LINES = 10
"""Height of a spectrogram in the terminal, in lines."""

_LETTER = 0.12
"""Width of a letter of a label, in inches, including some space."""

_SPAN_THRESHOLD = 0.5
"""Weight at the ends of a word's span, relative to its largest weight."""


@dataclass(frozen=True)
class AudioAlignment:
    """Log-mel frames of a recording, and weights that align a transcript with them."""

    frames: Floats
    """(F, M), log-mel energies."""
    seconds: float
    """Duration of the recording."""
    words: tuple[str, ...]
    """Words of the transcript."""
    weights: Mapping[str, Floats]
    """Weights (words, positions) by method, such as attention or CTC; positions are equidistant."""
    step: float
    """Seconds from one position to the next."""
    has_spans: bool = True
    """Whether words have time spans; the label of a whole recording has none."""

    def __post_init__(self) -> None:
        if self.frames.ndim != 2 or not self.frames.size or not np.isfinite(self.frames).all():
            raise DataError(
                "`frames` must be finite numbers of frames and mel bins, but have the shape "
                f"{self.frames.shape}."
            )
        for weights in self.weights.values():
            check_weights(weights, self.words, ["?"] * np.shape(weights)[-1])


def spans(weights: ArrayLike) -> list[tuple[int, int] | None]:
    """Return the span of positions around each word's largest weight, end excluded.

    Args:
        weights: (T, S). A word without weight, such as the end token, has no span.
    """
    result: list[tuple[int, int] | None] = []
    for row in np.asarray(weights, dtype=float):
        is_inside = row >= _SPAN_THRESHOLD * row.max()
        first = last = int(row.argmax())
        while first > 0 and is_inside[first - 1]:
            first -= 1
        while last + 1 < len(row) and is_inside[last + 1]:
            last += 1
        result.append((first, last + 1) if row.max() > 0 else None)
    return result


def plot(alignment: AudioAlignment, *, title: str = "") -> "Figure":
    """Plot the spectrogram once per method, with the spans of words and the weights below.

    Args:
        alignment: Recording, words and weights.
        title: Title of the plot.
    """
    from matplotlib.figure import Figure

    heights = (1.5, 0.17 * len(alignment.words) + 0.1)
    height = len(alignment.weights) * (sum(heights) + 1.0) + 0.6
    pad = 30 if alignment.has_spans else 6  # points above a spectrogram, with room for words
    with figure.style():
        canvas = Figure(figsize=(_width(alignment), height))
        canvas.suptitle(clean(title), x=0.02, ha="left", fontweight="bold", fontsize=12)
        rows = canvas.add_gridspec(
            len(alignment.weights), 1, hspace=0.5, top=1 - (0.63 + pad / 72) / height
        )
        for number, (name, weights) in enumerate(alignment.weights.items()):
            pair = rows[number].subgridspec(2, 1, height_ratios=heights, hspace=0.1)
            upper, lower = (canvas.add_subplot(pair[index]) for index in (0, 1))
            _draw_frames(upper, alignment)
            if alignment.has_spans:
                _draw_spans(upper, alignment, spans(weights))
            upper.set_title(clean(name), loc="left", fontsize=10, pad=pad)
            _draw_weights(lower, alignment, weights)
            lower.set_xlabel("seconds")
    return canvas


def save(path: Path, alignment: AudioAlignment, *, title: str = "") -> None:
    """Save the plot in the format given by the suffix: `.png`, `.svg`, `.pdf` or `.html`."""
    figure.save(path, plot(alignment, title=title), title=title)


def in_terminal(
    alignment: AudioAlignment, *, has_color: bool = True, width: int | None = None
) -> Text:
    """Render the spectrogram and, below it, the weights of each word by method.

    Args:
        alignment: Recording, words and weights.
        has_color: Whether the terminal supports colour; otherwise shades are used.
        width: Width of a line in cells; that of the terminal if not given.
    """
    names = [label(word) for word in alignment.words]
    margin = max(map(len, names)) + 1
    cells = max(10, terminal.line_width(width) - margin - 1)
    lines = [
        Text(" " * margin).append_text(line)
        for line in terminal.stretch(_pixels(alignment.frames), cells, LINES, has_color=has_color)
    ]
    for method, weights in alignment.weights.items():
        lines.append(Text(f"{' ' * margin}{clean(method)}", "dim"))
        # Each cell shows the position at its middle.
        times = (np.arange(cells) + 0.5) / cells * alignment.seconds
        columns = np.minimum((times / alignment.step).astype(int), weights.shape[1] - 1)
        for name, row in zip(names, weights[:, columns] / find_vmax(weights), strict=True):
            line = Text(f"{name:>{margin - 1}} ")
            lines.append(line.append_text(terminal.strip(row)))
    last = f"{alignment.seconds:.2f} s"
    lines.append(Text(f"{' ' * margin}0{' ' * (cells - 1 - len(last))}{last}", "dim"))
    return Text("\n", no_wrap=True, overflow="ignore").join(lines)


def _width(alignment: AudioAlignment) -> float:
    """Return the width of the plot, in inches."""
    return min(24.0, max(6.0, 2.2 * alignment.seconds))


def _pixels(frames: Floats) -> Pixels:
    """Render log-mel frames (F, M) as an image, low frequencies at the bottom."""
    from matplotlib import colormaps

    low, high = np.percentile(frames, [5, 99.5])
    strength = ((frames - low) / max(high - low, 1e-6)).clip(0, 1)
    colors: Floats = 255 * colormaps["magma"](strength.T[::-1])[..., :3]  # (M, F, 3)
    return colors.round().astype(np.uint8)


def _draw_frames(axes: "Axes", alignment: AudioAlignment) -> None:
    num_bins = alignment.frames.shape[1]
    edges = (0, alignment.seconds, 0, num_bins)
    axes.imshow(_pixels(alignment.frames), extent=edges, aspect="auto", interpolation="none")
    axes.set_ylabel("mel bin")
    axes.set_xlim(0, alignment.seconds)
    axes.tick_params(labelbottom=False)


def _draw_spans(
    axes: "Axes", alignment: AudioAlignment, word_spans: Sequence[tuple[int, int] | None]
) -> None:
    num_bins = alignment.frames.shape[1]
    letter = _LETTER * alignment.seconds / _width(alignment)
    label_ends = [0.0, 0.0]  # right end of the last label on each of two lines
    for number, (word, span) in enumerate(zip(alignment.words, word_spans, strict=True)):
        if span is None:
            continue
        color = figure.series_color(number)
        start, end = (min(position * alignment.step, alignment.seconds) for position in span)
        for time in (start, end):
            axes.axvline(time, color="white", linewidth=0.8, alpha=0.8)
        axes.plot([start, end], [num_bins] * 2, color=color, linewidth=5, clip_on=False)
        name = label(word)
        middle, half = (start + end) / 2, letter * len(name) / 2
        line = 0 if middle - half >= label_ends[0] else 1
        label_ends[line] = middle + half
        above = num_bins * (1.05 + 0.12 * line)
        axes.text(middle, above, name, color=color, ha="center", va="bottom", fontsize=9)


def _draw_weights(axes: "Axes", alignment: AudioAlignment, weights: Floats) -> None:
    num_words, num_positions = weights.shape
    edges = (0, num_positions * alignment.step, num_words, 0)
    scale: dict[str, Any] = {"cmap": "Blues", "vmin": 0, "vmax": find_vmax(weights)}
    axes.imshow(weights, extent=edges, aspect="auto", interpolation="none", **scale)
    labels = [label(word) for word in alignment.words]
    axes.set_yticks(np.arange(num_words) + 0.5, labels, fontsize=8)
    axes.tick_params(left=False)
    axes.set_xlim(0, alignment.seconds)


if __name__ == "__main__":
    frames = np.random.default_rng(0).random((120, 40)) / 4
    frames[20:50, 5:12] += 1
    frames[70:100, 20:30] += 1
    by_method = {"attention": np.eye(2).repeat(15, axis=1), "CTC": np.eye(2).repeat(15, axis=1) / 2}
    demo = AudioAlignment(frames, 1.2, ("low", "high"), by_method, step=0.04)
    print(in_terminal(demo).plain)
