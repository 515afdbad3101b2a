"""What is said of images: captions, and translations that may look at one."""

from pathlib import Path
from statistics import mean
from typing import Any

from regard.plots import curves
from regard.plots import figure as picture

from .parts import Runs, making, plain, spread, table

TITLES = {
    "bleu": "BLEU",
    "bleu1": "BLEU-1",
    "bleu2": "BLEU-2",
    "bleu3": "BLEU-3",
    "bleu4": "BLEU-4",
    "rougeL": "ROUGE-L",
    "cider": "CIDEr",
    "chrf": "chrF",
}

DIGITS = {"cider": 3}
"""How many digits of a score are told after the point, if not one: CIDEr is mostly below 1."""

PUBLISHED = {
    "soft": {"bleu1": 67.0, "bleu2": 44.8, "bleu3": 29.9, "bleu4": 19.5},
    "hard": {"bleu1": 67.0, "bleu2": 45.7, "bleu3": 31.4, "bleu4": 21.3},
}
"""Xu et al. 2015, table 1, Flickr8k."""

METEOR = {"soft": 18.93, "hard": 20.30}
"""Which they measure besides, and we do not."""


def write_captioning(value: dict[str, Any], folder: Path) -> str:
    """Write the page on captions and draw its picture."""
    runs: Runs = value["runs"]
    sizes = sorted({run["settings"]["data"]["source"]["size"] for run in runs})
    pixels = " or ".join(f"{size} × {size}" for size in sizes)
    meteor = " and ".join(f"{found:.2f} ({name})" for name, found in METEOR.items())
    parts = [
        "# Captions",
        "",
        "Flickr8k (Hodosh et al. 2013): a photo → a sentence, five references each, official "
        f"split. Ours see photos of {pixels} pixels and begin from nothing or, where their name "
        "says so, with a classifier of CIFAR-10. The rows of Xu et al. 2015 (table 1) begin with "
        "features that were learned from ImageNet's million photos, at full resolution, so they "
        f"are no like for like; they have METEOR {meteor}, which is not measured here. Several "
        "runs: mean ± deviation over seeds; a single one: half the 95 % interval. Together: each "
        "word by the mean of their probabilities. Rewarded: it went on learning by the CIDEr of "
        "captions that it drew itself (`rennie2017`, Rennie et al. 2017), its eyes as they were.",
        "",
        _caption_scores(runs, value["together"]),
        "",
        *_learning(runs, folder, "captioning"),
        "## The first photos of the test set, unpicked",
        "",
        "Words alone: the photos belong to those who took them.",
        "",
        *_captions(runs),
        making(value),
        "",
    ]
    return "\n".join(parts)


def _caption_scores(runs: Runs, together: Runs) -> str:
    # As papers order them, whichever of them leads a recipe.
    keys = sorted(runs[0]["test"]["scores"], key=[*TITLES].index)
    rows = _score_rows(runs, keys)
    for several in together:
        cells = [spread([several], key, digits=DIGITS.get(key, 1)) for key in keys]
        size = f"{several['parameters'] / 1e6:.1f} M"
        rows.append((several["name"], 1, size, *cells, ""))
    for name, scores in PUBLISHED.items():
        cells = [f"{scores[key]:.1f}" if key in scores else "–" for key in keys]
        rows.append((f"*Xu et al. 2015, {name}*", "", "", *cells, ""))
    return table(("model", "runs", "weights", *(TITLES[key] for key in keys), "minutes"), rows)


def _score_rows(runs: Runs, keys: list[str]) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for name in dict.fromkeys(run["name"] for run in runs):
        own = [run for run in runs if run["name"] == name]
        minutes = mean(run["training"]["seconds"] for run in own) / 60
        size = f"{own[0]['parameters'] / 1e6:.1f} M"
        cells = [spread(own, key, digits=DIGITS.get(key, 1)) for key in keys]
        rows.append((name, len(own), size, *cells, f"{minutes:.1f}"))
    return rows


def _learning(runs: Runs, folder: Path, name: str) -> list[str]:
    """Draw how the first run of each kind learned."""
    key = runs[0]["settings"]["validation"]["metric"]
    first = {run["name"]: run for run in reversed(runs)}
    series = {
        run["name"]: [(row["step"], row[key]) for row in run["journal"] if key in row]
        for run in reversed(first.values())
    }
    title = TITLES.get(key, key)
    drawing = curves.lines(series, x_label="step", y_label=f"validation {title}")
    picture.save(folder / f"{name}-learning.svg", drawing)
    return [f"![validation {title} by step]({name}-learning.svg)", ""]


def _captions(runs: Runs) -> list[str]:
    shown = [run for run in runs if run["samples"]]
    parts = []
    for number, sample in enumerate(shown[0]["samples"], start=1):
        # What belongs to an item stands below its text, which begins later after a longer number.
        indent = " " * len(f"{number}. ")
        people = " · ".join(map(plain, sample["references"]))
        parts.append(f"{number}. *people*: {people}")
        parts += [
            f"{indent}- {run['name']}: {plain(run['samples'][number - 1]['answer'])}"
            for run in shown
        ]
    return [*parts, ""]


def write_multimodal(value: dict[str, Any], folder: Path) -> str:
    """Write the page on translation with an image and draw its picture."""
    runs: Runs = value["runs"]
    keys = list(runs[0]["test"]["scores"])
    titles = [TITLES.get(key, key) for key in keys]
    parts = [
        "# Translation with an image",
        "",
        "Multi30k (Elliott et al. 2016), English → German: the sentences whose photo is in "
        "Flickr8k. `multimodal` reads the sentence and sees the photo; `multimodal-text` is the "
        f"same without it, on the same sentences. {runs[0]['test']['num_examples']:,} to test on. "
        "Several runs: mean ± deviation over seeds; a single one: half the 95 % interval.",
        "",
        table(("model", "runs", "weights", *titles, "minutes"), _score_rows(runs, keys)),
        "",
        *_learning(runs, folder, "multimodal"),
        *_differences(value["together"]),
        "## The first sentences of the test set, unpicked",
        "",
        *_translations(runs),
        making(value),
        "",
    ]
    return "\n".join(parts)


def _differences(rows: Runs) -> list[str]:
    """Tell how much better the image makes it, and whether that may be chance."""
    if not rows:
        return []
    metrics = list(rows[0]["differences"])
    cells = [
        (f"{row['than']}, seed {row['seeds']}", *(_difference(row, name) for name in metrics))
        for row in rows
        if row["seeds"] != "all"
    ]
    overall = [row for row in rows if row["seeds"] == "all"]
    cells += [
        (f"**{row['than']}, all seeds**", *(_difference(row, name) for name in metrics))
        for row in overall
    ]
    first = rows[0]["differences"][metrics[0]]
    return [
        "## What the image is worth",
        "",
        "How much better the model is with the right image than a model that sees none, and than "
        "itself with the image of another sentence. In brackets the 95 % interval of a paired "
        "bootstrap over sentences; all seeds: of their mean difference, each resample the same for "
        "all of them. p is that of sacreBLEU; what is said below goes by the intervals.",
        "",
        table(("than with", *(TITLES.get(name, name) for name in metrics)), cells),
        "",
        *(_verdict(row, metrics) for row in overall),
        "",
        f"`{first['signature']}`",
        "",
    ]


def _difference(row: dict[str, Any], metric: str) -> str:
    found = row["differences"][metric]
    low, high = found["interval"]
    return f"{found['value']:+.2f} [{low:+.2f}, {high:+.2f}], p = {found['p_value']:.3f}"


def _verdict(row: dict[str, Any], metrics: list[str]) -> str:
    told = []
    for name in metrics:
        low, high = row["differences"][name]["interval"]
        found = "better" if low > 0 else "worse" if high < 0 else "not different beyond chance"
        told.append(f"{found} by {TITLES.get(name, name)}")
    return f"- The right image, compared with {row['than']}, over all seeds: {', '.join(told)}."


def _translations(runs: Runs) -> list[str]:
    shown = [run for run in runs if run["samples"]]
    rows = [
        [plain(text) for text in (source, right, *(run["samples"][row][2] for run in shown))]
        for row, (source, right, _) in enumerate(shown[0]["samples"])
    ]
    return [table(("sentence", "right", *(run["name"] for run in shown)), rows), ""]
