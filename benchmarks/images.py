"""Train classifiers of images, captions and translations with an image, and gather JSON files.

    python benchmarks/images.py classification sizes captioning multimodal --jobs 14

They need the folders `fashion-mnist`, `cifar10`, `flickr8k` and `multi30k` in `$REGARD_DATA`. Of
photos only what was said of them is kept. The pages are drawn from the JSON files by
`benchmarks/pages.py`.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import conduct
import torch
from flops import count_flops
from side_by_side import Run

from regard.core.files import read_json
from regard.data.example import Example
from regard.data.text.columns import as_source
from regard.data.text.readers import read_json_lines
from regard.metrics.significance import PAIRED, paired_bootstrap_of_runs
from regard.runs import folder as runs

CLASSIFIERS = ("he2016", "dosovitskiy2021")

GREY = ("data.source.channels=1", "data.source.size=28")
"""The pictures of Fashion-MNIST as they are."""

SIZES = (100, 500, 2_500, 12_500, 55_000)
"""Numbers of training images; the last is all but those held out to validate."""

ALIKE = (
    "train.max_epochs=0",
    "train.max_steps=1000",
    "train.validate_every=500",
    "train.patience=0",
)
"""As many steps whatever the number of images."""

EYES = "classification/cifar10-he2016-seed1"
"""The classifier whose encoder some captions begin with."""

REWARDED = "rennie2017"
"""The recipe by which a captioner goes on learning, from what its own captions are worth."""

MILDER = ("data.source.augmentation.crop=2", "data.source.augmentation.cutout=6")
"""Clothes fill their pictures, of which less may be lost."""

TRANSLATORS = {"multimodal": "multi30k:images", "multimodal-text": "multi30k:images-text"}
"""Recipes that translate with the image and without it, and their data: the same sentences."""

SEEDS = (1, 2, 3)
NUM_SAMPLES = 12
NUM_BOOTSTRAP = 200


def _classification(_folder: Path) -> list[Run]:
    """Plan both models on both data sets; first what others wait for."""
    clothes = ("fashion-mnist",)
    return [
        *(Run(f"cifar10 {recipe}", recipe, ("cifar10",)) for recipe in CLASSIFIERS),
        *(
            Run(f"fashion-mnist {recipe}", recipe, clothes, (*GREY, *MILDER))
            for recipe in CLASSIFIERS
        ),
    ]


def _sizes(_folder: Path) -> list[Run]:
    return [
        Run(f"{recipe} {num}", recipe, (f"fashion-mnist:{num}",), (*GREY, *MILDER, *ALIKE))
        for num in reversed(SIZES)
        for recipe in CLASSIFIERS
    ]


def _captioning(_folder: Path) -> list[Run]:
    """Plan captions of eyes that know nothing yet, and of eyes that have learned to classify."""
    data, words = ("flickr8k",), (f"init_from={{folder}}/../{EYES}",)
    found = [
        Run(f"{recipe}, begun with cifar10", recipe, data, words, seed, needs=(EYES,))
        for recipe, seeds in (("xu2015", SEEDS), ("xu2015-hard", SEEDS[:1]))
        for seed in seeds
    ]
    first = found[0]
    words = (f"init_from={{folder}}/{first.folder}",)
    found.append(Run(f"{first.name}, then rewarded", REWARDED, data, words, needs=(first.folder,)))
    found += [Run(name, name, data) for name in ("xu2015", "vit-captions")]
    return found


def _multimodal(_folder: Path) -> list[Run]:
    return [
        Run(recipe, recipe, (data,), (), seed)
        for recipe, data in TRANSLATORS.items()
        for seed in SEEDS
    ]


EXPERIMENTS = {
    "classification": _classification,
    "sizes": _sizes,
    "captioning": _captioning,
    "multimodal": _multimodal,
}


def main() -> None:
    """Train the runs of some experiments and gather what they measured."""
    asked = conduct.arguments(argparse.ArgumentParser(description=__doc__), EXPERIMENTS)
    conduct.experiments(EXPERIMENTS, asked, gather=_gather, join=_join)


def _gather(run: Run, place: Path) -> dict[str, Any]:
    return {**conduct.describe(run, place), **GATHERED[place.parent.name](run, place)}


def _of_classifier(run: Run, place: Path) -> dict[str, Any]:
    """Tell what one image costs, so that models can be compared at equal compute."""
    data, _, num_images = run.data[0].partition(":")
    about = {"data": data, "flops": _forward_flops(place)}
    return {**about, "images": int(num_images)} if num_images else about


def _forward_flops(place: Path) -> int:
    """Return the operations of labelling one image."""
    task = runs.load(place, "cpu")
    image, mask = torch.zeros(1, *task.source.size), torch.ones(1, 1, dtype=torch.bool)
    with torch.no_grad():
        return count_flops(task.model, (image, mask))


def _of_captions(run: Run, place: Path) -> dict[str, Any]:
    """Keep the first captions of the test set: words alone, since the photos are not ours."""
    if run.seed != SEEDS[0]:
        return {"samples": []}
    rows = zip(_read_test(place), read_json(place / runs.PREDICTIONS), strict=True)
    return {
        "samples": [
            {"references": [example.target, *example.references], "answer": answer}
            for example, answer in [*rows][:NUM_SAMPLES]
        ]
    }


def _of_translations(run: Run, place: Path) -> dict[str, Any]:
    if run.seed != SEEDS[0]:
        return {"samples": []}
    rows = zip(_read_test(place), read_json(place / runs.PREDICTIONS), strict=True)
    return {
        "samples": [
            (_sentence(example), example.target, answer)
            for example, answer in [*rows][:NUM_SAMPLES]
        ]
    }


GATHERED: dict[str, Callable[[Run, Path], dict[str, Any]]] = {
    "classification": _of_classifier,
    "sizes": _of_classifier,
    "captioning": _of_captions,
    "multimodal": _of_translations,
}
"""What a run of each experiment tells besides its scores."""


def _read_test(place: Path) -> list[Example]:
    """Return what a run was tested on; a sentence with an image is a pair."""
    path = place / runs.TEST
    lines = path.read_text(encoding="utf-8").split("\n")
    return [example for _, example in read_json_lines(str(path), lines, join=as_source)]


def _sentence(example: Example) -> str:
    """Return what is translated, without the image that may stand beside it."""
    return example.source if isinstance(example.source, str) else example.source[0]


def _join(name: str, folder: Path) -> list[dict[str, Any]]:
    return JOINED[name](folder) if name in JOINED else []


def _write_together(folder: Path) -> list[dict[str, Any]]:
    """Let the soft models with other seeds write captions together."""
    name = "xu2015, begun with cifar10"
    places = [folder / run.folder for run in _captioning(folder) if run.name == name]
    places = [place for place in places if (place / runs.METRICS).exists()]
    if len(places) < 2:
        return []
    task = runs.load(",".join(map(str, places)))
    found = task.evaluate(_read_test(places[0]), num_bootstrap=NUM_BOOTSTRAP)
    return [
        {
            "name": f"{len(places)} x {name}, together",
            "parameters": sum(read_json(place / runs.METRICS)["parameters"] for place in places),
            "test": found.to_dict(),
        }
    ]


def _differences(folder: Path) -> list[dict[str, Any]]:
    """Compare translations with the image to those without it, and with another's image."""
    pairs = {seed: [folder / f"{recipe}-seed{seed}" for recipe in TRANSLATORS] for seed in SEEDS}
    pairs = {
        seed: pair
        for seed, pair in pairs.items()
        if all((place / runs.METRICS).exists() for place in pair)
    }
    if not pairs:
        return []
    tests = [_read_test(place) for pair in pairs.values() for place in pair]
    test = tests[0]
    _check_same(tests)
    references = [[example.target, *example.references] for example in test]
    right = {seed: read_json(place / runs.PREDICTIONS) for seed, (place, _) in pairs.items()}
    baselines = {
        "no image": {s: read_json(place / runs.PREDICTIONS) for s, (_, place) in pairs.items()},
        "another image": {s: _with_other_images(place, test) for s, (place, _) in pairs.items()},
    }
    return [
        row
        for title, others in baselines.items()
        for row in _compare(title, others, right, references=references)
    ]


def _check_same(tests: Sequence[Sequence[Example]]) -> None:
    """Raise if runs to be compared were not tested on the same sentences."""
    asked = [[(_sentence(example), example.target) for example in test] for test in tests]
    if any(other != asked[0] for other in asked):
        raise SystemExit("The runs were tested on different sentences. Train them anew.")


def _with_other_images(place: Path, test: Sequence[Example]) -> list[str]:
    """Translate every sentence with the image of the sentence half the test set away."""
    task = runs.load(place)
    half = len(test) // 2
    images = [example.source[1] for example in test]
    others = images[half:] + images[:half]
    answers: list[str] = task.translate(
        [(_sentence(example), image) for example, image in zip(test, others, strict=True)]
    )
    return answers


def _compare(
    title: str,
    baselines: Mapping[int, Sequence[str]],
    systems: Mapping[int, Sequence[str]],
    *,
    references: Sequence[Sequence[str]],
) -> list[dict[str, Any]]:
    """Return how much better systems are than baselines, for each seed and on average."""
    chosen: dict[str, Sequence[int]] = {str(seed): (seed,) for seed in systems}
    chosen["all"] = (*systems,)
    return [
        {
            "than": title,
            "seeds": name,
            "differences": {
                metric: paired_bootstrap_of_runs(
                    [baselines[seed] for seed in seeds],
                    [systems[seed] for seed in seeds],
                    references,
                    metric=metric,
                ).to_dict()
                for metric in PAIRED
            },
        }
        for name, seeds in chosen.items()
    ]


JOINED: dict[str, Callable[[Path], list[dict[str, Any]]]] = {
    "captioning": _write_together,
    "multimodal": _differences,
}
"""What several runs of an experiment tell together."""


if __name__ == "__main__":
    main()
