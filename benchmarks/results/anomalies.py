"""Odd images by what an autoencoder cannot draw."""

from pathlib import Path
from typing import Any

from regard.plots import figure as picture
from regard.plots.curves import detection

from .parts import Runs, making, table


def write(value: dict[str, Any], folder: Path) -> str:
    """Write the page on anomalies and draw its pictures."""
    runs: Runs = value["runs"]
    parts = [
        "# What does not look like anything learned",
        "",
        "An autoencoder learns images with some labels; images with the others are odd. What tells "
        "them is the squared error between an image and what is drawn from its code. Beside it: "
        "principal components of the same training images, as many as the code has numbers (PCA). "
        "AUC: how often an odd image has the larger error of the two. The threshold lets 5 % of "
        "the validation images pass for odd; found: odd test images beyond it. ± is half the 95 % "
        "interval (DeLong et al. 1988); p: whether the difference of both is chance.",
        "",
    ]
    for group in dict.fromkeys(run["group"] for run in runs):
        own = [run for run in runs if run["group"] == group]
        parts += _group(group, own, folder)
    return "\n".join([*parts, making(value), ""])


def _group(group: str, runs: Runs, folder: Path) -> list[str]:
    about = runs[0]["anomalies"]
    rows = []
    for run in runs:
        found = run["anomalies"]
        own, rival, ahead = found["autoencoder"], found["pca"], found["difference"]
        rows.append(
            (
                found["width"],
                _with_interval(own["auc"], 4),
                _with_interval(rival["auc"], 4),
                f"{ahead['value']:+.4f} (p {ahead['p_value']:.1g})",
                _with_interval(own["found"], 1),
                _with_interval(rival["found"], 1),
                f"{own['false_alarms']['value']:.1f}",
                f"{rival['false_alarms']['value']:.1f}",
            )
        )
    best = max(runs, key=lambda run: float(run["anomalies"]["autoencoder"]["auc"]["value"]))
    file = f"anomalies-{group}.svg"
    picture.save(folder / file, _draw(best["anomalies"]))
    head = ("numbers", "AUC", "AUC of PCA", "difference", "found %", "PCA", "alarms %", "PCA")
    return [
        f"## Learned: {group}",
        "",
        f"Normal: `{about['normal']}`, {about['num_normal']:,} test images. "
        f"Odd: `{about['odd']}`, {about['num_odd']:,}.",
        "",
        table(head, rows),
        "",
        f"With {best['anomalies']['width']} numbers:",
        "",
        f"![errors of normal and odd images, and ROC curves]({file})",
        "",
    ]


def _with_interval(result: dict[str, Any], digits: int) -> str:
    low, high = result["interval"]
    return f"{result['value']:.{digits}f} ± {(high - low) / 2:.{digits}f}"


def _draw(found: dict[str, Any]) -> Any:
    drawn = found["drawn"]
    own = drawn["autoencoder"]
    names = {"autoencoder": "autoencoder", "pca": f"PCA, {found['num_components']} components"}
    return detection(
        {"normal": own["normal"], "odd": own["odd"]},
        {
            f"{name}: {found[key]['auc']['value']:.3f}": [
                *zip(drawn[key]["alarms"], drawn[key]["found"], strict=True)
            ]
            for key, name in names.items()
        },
        x_label="squared error",
        threshold=found["autoencoder"]["threshold"],
    )
