"""Videos of moving shapes: what is told of them, what hangs on order, when and where words look."""

from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from regard.core.files import write_text
from regard.data.datasets.synthetic.moving import find_motion, render_motion
from regard.plots import figure as picture
from regard.plots import grid as tiles
from regard.plots import heatmap, overlay

from .parts import Runs, changes, making, shrink, spread, table
from .pictures import tell_changes

TITLES = {
    "accuracy": "right %",
    "bleu4": "BLEU-4",
    "macro_f1": "macro F1",
    "accuracy@5": "right among 5 %",
}
SIZE = 64
"""Width and height of the frames that are drawn, in pixels."""

GROUPS = {
    "what happens": ("alone", "bounce", "hit", "pass"),
    "speed": ("slowly", "quickly"),
    "direction": ("left", "right", "up", "down"),
}
"""Which words about a video belong together."""


def write(value: dict[str, Any], folder: Path) -> str:
    """Write the page and draw its pictures."""
    runs: Runs = value["runs"]
    directions, frames = (
        [run for run in runs if run["recipe"].startswith(name)]
        for name in ("moving-directions", "next-frame")
    )
    captions = [run for run in runs if run not in directions and run not in frames]
    parts = [
        "# What happens in a video",
        "",
        "One coloured shape sets out slowly or quickly, may bounce off the edge, hit another shape "
        "or pass it; drawn on the spot. A residual network sees each frame, blocks look over space "
        "and time (after Arnab et al. 2021), and a decoder tells, or the mean is labelled. No "
        "caption of the test set was seen in training. ± is the deviation over seeds, or half the "
        f"95 % interval. {changes(runs)}",
        "",
    ]
    if captions:
        parts += ["## In words", "", _scores(captions), "", *_groups(captions)]
        parts += _when(captions, folder)
        parts += _films(captions, folder)
    if directions:
        parts += ["## The direction in which it sets out", "", _scores(directions), ""]
        parts += _views(directions)
    if frames:
        parts += ["## The next frame", "", *tell_changes(frames, folder, "video")]
    return "\n".join([*parts, making(value), ""])


def _scores(runs: Runs) -> str:
    keys = list(runs[0]["test"]["scores"])
    rows = []
    for name in dict.fromkeys(run["name"] for run in runs):
        own = [run for run in runs if run["name"] == name]
        minutes = mean(run["training"]["seconds"] for run in own) / 60
        size = f"{own[0]['parameters'] / 1e6:.2f} M"
        cells = [spread(own, key) for key in keys]
        rows.append((name, own[0]["data"], len(own), size, *cells, f"{minutes:.1f}"))
    titles = [TITLES.get(key, key) for key in keys]
    return table(("model", "data", "runs", "weights", *titles, "minutes"), rows)


def _groups(runs: Runs) -> list[str]:
    """Tell how many captions are right by what there is to see."""
    first = {run["name"]: run for run in reversed(runs)}
    found = {
        name: {group["name"]: group["accuracy"] for group in run["test"]["by_tag"]}
        for name, run in reversed(first.items())
    }
    rows = [
        (f"{title}: {tag}", *(f"{rates[tag]:.1f}" for rates in found.values()))
        for title, tags in GROUPS.items()
        for tag in tags
        if all(tag in rates for rates in found.values())
    ]
    return [table(("right %, by", *found), rows), ""] if rows else []


def _when(runs: Runs, folder: Path) -> list[str]:
    parts = []
    for run in runs:
        if not run.get("when"):
            continue
        words = list(run["when"])
        weights = np.array([run["when"][word] for word in words])
        frames = [f"frame {number}" for number in range(1, weights.shape[1] + 1)]
        file = f"video-when-{run['recipe']}.svg"
        write_text(folder / file, str(heatmap.svg(weights, words, frames)))
        parts += [
            f"When each word looks, on average over test videos (`{run['recipe']}`, seed "
            f"{run['seed']}; a row sums to 1):",
            "",
            f"![attention of words over frames]({file})",
            "",
        ]
    return parts


def _films(runs: Runs, folder: Path) -> list[str]:
    """Draw when and where the words of the first videos look; the frames are drawn again."""
    parts = []
    for run in runs:
        for number, one in enumerate(run.get("maps", []), start=1):
            weights = np.array(one["weights"]).reshape(-1, *one["grid"])
            num_frames = weights.shape[1]
            frames = render_motion(find_motion(one["video"]), num_frames=num_frames, size=SIZE)
            shown = overlay.video_attention(frames, one["words"], weights)
            file = f"video-{run['recipe']}-{number}.png"
            picture.save(folder / file, tiles.sheet(shown, columns=num_frames))
            shrink(folder / file)
            parts += [
                f"`{run['recipe']}`, test video {number}, unpicked. Right: *{one['right']}*.",
                "",
                f"![{' '.join(one['words'])}]({file})",
                "",
            ]
    return parts


def _views(runs: Runs) -> list[str]:
    shown = [run for run in runs if "views" in run]
    if not shown:
        return []
    rows = [(name, *(f"{run['views'][name]:.1f}" for run in shown)) for name in shown[0]["views"]]
    return [
        f"What hangs on the order of the frames: right % of {shown[0]['num_views']} test videos in "
        "which nothing is hit and nothing bounces, so that backwards they set out the other way.",
        "",
        table(("seen", *(run["recipe"] for run in shown)), rows),
        "",
    ]
