"""Few labels: classifiers that begin with what needed none."""

from pathlib import Path
from statistics import mean
from typing import Any

from regard.plots import curves
from regard.plots import figure as picture

from .parts import Runs, making, score, spread, table


def write(value: dict[str, Any], folder: Path) -> str:
    """Write the page on features and draw its picture."""
    starts = [run for run in value["runs"] if not run["start"]]
    runs: Runs = [run for run in value["runs"] if run["start"]]
    found: dict[str, dict[int, Runs]] = {}
    for run in runs:
        kind = f"from {run['start']}" if run["start"] == "nothing" else run["start"]
        kind += ", frozen" if run["is_frozen"] else ""
        found.setdefault(kind, {}).setdefault(_size(run), []).append(run)
    series = {
        kind: [
            (size, mean(run["test"]["scores"]["accuracy"]["value"] for run in own))
            for size, own in by_size.items()
        ]
        for kind, by_size in found.items()
    }
    drawn = curves.scaling(series, x_label="labels", y_label="test accuracy %")
    picture.save(folder / "features.svg", drawn)
    sizes = sorted({_size(run) for run in runs})
    rows = [
        (f"{size:,}", *(_cell(by_size.get(size)) for by_size in found.values())) for size in sizes
    ]
    begun = [
        (run["name"], score(run, "psnr", digits=2), f"{run['training']['seconds']:.0f}")
        for run in starts
    ]
    return "\n".join(
        [
            "# Few labels",
            "",
            f"A classifier of `{runs[0]['data'].partition(':')[0]}` learns from a few labelled "
            "images. Its encoder begins with nothing, or with that of a model that has drawn all "
            "training images again without labels (`init_from=`): an autoencoder, or a denoiser, "
            "which has to guess what noise and a grey square hide. Frozen: the encoder "
            "stays as it is. All have the same encoder and take equally many steps. ± is the "
            "deviation over seeds; of one seed, half the 95 % interval.",
            "",
            "![test accuracy by number of labels](features.svg)",
            "",
            table(("labels", *found), rows),
            "",
            table(("begun with", "PSNR in dB", "seconds"), begun),
            "",
            making({**value, "runs": runs}),
            "",
        ]
    )


def _cell(runs: Runs | None) -> str:
    return spread(runs, "accuracy") if runs else "–"


def _size(run: dict[str, Any]) -> int:
    return int(run["data"].partition(":")[2])
