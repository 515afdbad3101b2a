"""Images from codes: what a code of a few numbers keeps, draws and restores."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from regard.plots import curves
from regard.plots import figure as picture
from regard.plots.grid import sheet
from regard.plots.scatter import projections

from .parts import Runs, making, noted, score, spread, table
from .pixels import tile, tiles

NUM_ROWS = 6
"""Test images of each picture, the first ones."""


def write(value: dict[str, Any], folder: Path) -> str:
    """Write the page on images that come back from codes, and draw its pictures."""
    runs: Runs = value["runs"]
    coded = [run for run in runs if run["code"]]
    plain = [run for run in coded if run["name"].startswith("autoencoder")]
    parts = [
        "# Images from codes",
        "",
        "An autoencoder reads an image, keeps a code of a few numbers and draws the image again "
        f"from these alone. Data: {_tell_data(runs)}. Errors are mean squared errors of a value, "
        "where black is 0 and white is 1; ± is half the 95 % interval.",
        "",
        *noted(value),
        *(_widths(plain, folder) if plain else []),
        *(_plane(plain, folder) if plain else []),
    ]
    for run in runs:
        if "drawn" in run:
            parts += _variational(run, folder)
    changed = [run for run in runs if "source_psnr" in run["test"]["scores"]]
    if changed:
        parts += ["## Better than the source", "", *tell_changes(changed, folder, "pictures")]
    return "\n".join([*parts, making(value), ""])


def _tell_data(runs: Runs) -> str:
    return ", ".join(f"`{data}`" for data in dict.fromkeys(run["data"] for run in runs))


def _widths(runs: Runs, folder: Path) -> list[str]:
    """Tell what codes of more and fewer numbers lose, beside as many principal components."""
    series = {
        "autoencoder": [(run["code"], _error(run)) for run in runs],
        "principal components": [(run["code"], run["pca"]["value"]) for run in runs],
    }
    drawn = curves.scaling(series, x_label="numbers of a code", y_label="squared error")
    _set_powers(drawn.axes[0])
    picture.save(folder / "pictures-widths.svg", drawn)
    rows = [
        (
            run["code"],
            f"{_error(run):.4f}",
            f"{run['pca']['value']:.4f}",
            score(run, "psnr", digits=2),
            score(run, "ssim", digits=3),
            f"{run['training']['seconds']:.0f}",
        )
        for run in runs
    ]
    head = ("numbers", "error", "error of PCA", "PSNR in dB", "SSIM", "seconds")
    rows_shown = [run["rows"] for run in runs if "rows" in run]
    return [
        "## How narrow a code may be",
        "",
        "Beside the autoencoder: as many principal components of the same training images "
        "(PCA), the best that lines can do.",
        "",
        "![error by width of the code](pictures-widths.svg)",
        "",
        table(head, rows),
        "",
        *(_reconstructions(runs, folder) if rows_shown else []),
    ]


def _set_powers(axes: Axes) -> None:
    """Measure y in powers of ten, in plain digits: those of formulas would stay raw in an SVG."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _error(run: dict[str, Any]) -> float:
    return float(run["test"]["scores"]["mse"]["value"])


def _reconstructions(runs: Runs, folder: Path) -> list[str]:
    """Draw the first test images, and what is left of them at each width."""
    found = []
    for number in range(NUM_ROWS):
        original = runs[0]["rows"][number][-1]
        found.append(tile(original["image"], "original" if number == 0 else ""))
        for run in runs:
            drawn = run["rows"][number][-2]
            caption = f"{run['code']} numbers" if number == 0 else ""
            found.append(tile(drawn["image"], caption, drawn["note"]))
    file = "pictures-widths.png"
    picture.save(folder / file, sheet(found, columns=1 + len(runs)))
    return [f"![what is left at each width]({file})", ""]


def _plane(runs: Runs, folder: Path) -> list[str]:
    """Draw the plane of codes of two numbers beside that of two principal components."""
    rows, drawn = [], []
    for run in runs:
        own, rival = run["planes"].values()
        rows.append((run["code"], *_told(own), *_told(rival)))
        if "places" in own:
            places = {name: np.array(one["places"]) for name, one in run["planes"].items()}
            notes = {
                name: f"15 neighbours {one['accuracy']['value']:.1f} %, "
                f"squared error {one['error']['value']:.4f}"
                for name, one in run["planes"].items()
            }
            plot = projections(places, own["labels"], notes=notes)
            picture.save(folder / "pictures-plane.svg", plot)
            drawn = ["![test images on two planes](pictures-plane.svg)", ""]
    head = ("numbers of the code", "neighbours %", "error", "neighbours of PCA %", "error of PCA")
    return [
        "## Two dimensions",
        "",
        "Test images on a plane: by their codes, and by two principal components of the pixels. "
        "Wider codes are brought to two numbers by their own principal components. Neighbours: how "
        "often most of the 15 nearest others have an image's label. No label was ever learned.",
        "",
        *drawn,
        table(head, rows),
        "",
    ]


def _told(plane: dict[str, Any]) -> tuple[str, str]:
    low, high = plane["accuracy"]["interval"]
    share = f"{plane['accuracy']['value']:.1f} ± {(high - low) / 2:.1f}"
    return share, f"{plane['error']['value']:.4f}"


def _variational(run: dict[str, Any], folder: Path) -> list[str]:
    """Show images that nobody drew, and a walk from one image to another."""
    scores = run["test"]["scores"]
    told = [f"{one['name']} {one['value']:.4g}" for one in scores.values()]
    parts = [
        "## A variational autoencoder",
        "",
        f"Recipe `{run['recipe']}`. Test: {', '.join(told)}.",
        "",
    ]
    for key, columns, words in (
        ("drawn", 10, "Images drawn from the prior, the first ones, unpicked:"),
        ("between", len(tiles(run["between"])), "From the first test image to the second:"),
    ):
        file = f"pictures-{key}.png"
        picture.save(folder / file, sheet(tiles(run[key]), columns=columns))
        parts += [words, "", f"![{words}]({file})", ""]
    return parts


def tell_changes(runs: Runs, folder: Path, page: str) -> list[str]:
    """Tell of images that are better than their source: without noise, larger, later."""
    rows = []
    for name in dict.fromkeys(run["name"] for run in runs):
        own = [run for run in runs if run["name"] == name]
        baseline = own[0]["test"]["scores"]["source_psnr"]["name"].partition("(")[2].rstrip(")")
        digits = {"source_mse": 4, "mse": 4, "source_psnr": 2, "psnr": 2, "ssim": 3}
        cells = [spread(own, key, digits=num) for key, num in digits.items()]
        rows.append((name, own[0]["data"], baseline, *cells))
    head = ("model", "data", "baseline", "its error", "error", "its PSNR", "PSNR in dB", "SSIM")
    parts = [table(head, rows), ""]
    for run in runs:
        if "rows" not in run:
            continue
        found = [
            tile(one["image"], one["caption"], one["note"])
            for row in run["rows"][:NUM_ROWS]
            for one in row
        ]
        file = f"{page}-{run['name'].replace(' ', '-')}.png"
        picture.save(folder / file, sheet(found, columns=2 * len(run["rows"][0])))
        parts += [f"### {run['name'].capitalize()}", "", f"![{run['name']}]({file})", ""]
    return parts
