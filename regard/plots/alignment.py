"""Alignment maps of sentence pairs: attention weights between words, with gold links outlined."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from regard.core.errors import DataError
from regard.core.terminal import clean
from regard.plots.figure import COLORS, style
from regard.plots.inputs import check_weights, label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = 2
_CELL = 0.3
_MARGIN = 1.15
_SLOPE = 50


@dataclass(frozen=True)
class AlignmentMap:
    """Attention weights of one sentence pair between words."""

    weights: ArrayLike
    """(target words, source words)."""
    targets: Sequence[str]
    sources: Sequence[str]
    links: Collection[tuple[int, int]] = ()
    """Gold links of a source and a target word, outlined in the map."""


def alignment_maps(maps: Mapping[str, AlignmentMap]) -> "Figure":
    """Plot alignment maps by title: source words on top, target words on the left.

    White is the weight 0 and the darkest blue the weight 1, in all maps.

    Args:
        maps: Maps by title; a title may be empty.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    if not maps:
        raise DataError("There is nothing to plot: `maps` must hold at least one map.")
    num_columns = min(_COLUMNS, len(maps))
    num_rows = math.ceil(len(maps) / num_columns)
    width = max(len(one.sources) for one in maps.values()) * _CELL + _MARGIN
    height = max(len(one.targets) for one in maps.values()) * _CELL + _MARGIN
    with style():
        canvas = Figure(figsize=(width * num_columns, height * num_rows), layout="constrained")
        all_axes = canvas.subplots(num_rows, num_columns, squeeze=False).flat
        for axes, (title, one) in zip(all_axes, maps.items(), strict=False):
            weights = check_weights(one.weights, one.targets, one.sources)
            axes.imshow(weights, cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
            axes.set_xticks(range(len(one.sources)), [label(word) for word in one.sources])
            axes.set_yticks(range(len(one.targets)), [label(word) for word in one.targets])
            axes.tick_params(length=0, labeltop=True, labelbottom=False)
            for tick in axes.get_xticklabels():
                tick.set(rotation=_SLOPE, ha="left", rotation_mode="anchor")
            for source, target in one.links:
                corner = (source - 0.44, target - 0.44)
                axes.add_patch(Rectangle(corner, 0.88, 0.88, fill=False, ec=COLORS[1], lw=1.2))
            axes.set_xlabel(clean(title), fontsize=10)
        for axes in list(all_axes):
            axes.set_axis_off()
    return canvas


if __name__ == "__main__":
    from regard.plots.figure import to_svg

    demo = AlignmentMap(
        [[0.94, 0.02, 0.04], [0.11, 0.01, 0.88], [0.03, 0.95, 0.02]],
        ["je", "t'", "aime"],
        ["I", "love", "you"],
        {(0, 0), (2, 1), (1, 2)},
    )
    print(to_svg(alignment_maps({"weights over I, love, you": demo})))
