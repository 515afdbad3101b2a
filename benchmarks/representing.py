"""Train autoencoders of images and gather what they are for: one JSON file an experiment.

    python benchmarks/representing.py pictures anomalies compression features --jobs 12
    python benchmarks/representing.py pictures anomalies compression features --tiny

It needs the folders `fashion-mnist` and `cifar10` in `$REGARD_DATA`; `--tiny` takes drawn shapes
instead, and is done in minutes on a processor. The pages are drawn from the JSON files by
`benchmarks/pages.py`. Photos are not ours: of them only numbers are kept.
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import conduct
import representations
from side_by_side import Run

from regard.runs import folder as runs


@dataclass(frozen=True)
class World:
    """What the experiments are made of."""

    data: str
    """Pictures with labels, which may be shown."""
    photos: str
    """Pictures in colour."""
    form: tuple[str, ...]
    """Settings for the form of the former."""
    photo_form: tuple[str, ...]
    """Settings for the form of the latter."""
    groups: Mapping[str, str]
    """Labels that are learned, by the name of their group; the others are odd."""
    has_own_photos: bool = False
    """Whether those in colour may be shown, too."""
    num_train: str = ""
    """Pictures to learn from; all if empty."""
    sizes: tuple[int, ...] = (100, 300, 1_000, 3_000)
    """Numbers of labels that a classifier learns from."""
    steps: int = 2_500
    """Steps of a training that no recipe says the length of."""
    suffix: str = ""
    """What the names of recipes end in."""
    eye: tuple[int, ...] = (32, 64, 128)
    """Widths of an encoder that leaves a grid of cells."""

    def named(self, *parts: str) -> str:
        """Return the data with what is asked of it after the colon."""
        asked = ",".join(filter(None, (self.num_train, *parts)))
        return f"{self.data}:{asked}" if asked else self.data

    def lasting(self, steps: int) -> tuple[str, ...]:
        """Return settings for a training of so many steps."""
        return (
            "train.max_epochs=0",
            f"train.max_steps={steps}",
            f"train.validate_every={steps // 4}",
            "train.patience=0",
        )

    def grid(self, place: str) -> tuple[str, ...]:
        """Return settings for an encoder that leaves a grid of cells."""
        blocks = [1] * len(self.eye)
        return (
            f"{place}.stem=small",
            f"{place}.widths={list(self.eye)}",
            f"{place}.blocks={blocks}",
        )


def _form(channels: int, size: int) -> tuple[str, ...]:
    return tuple(
        f"data.{side}.{name}={value}"
        for side in ("source", "target")
        for name, value in (("channels", channels), ("size", size))
    )


FULL = World(
    data="fashion-mnist",
    photos="cifar10",
    form=_form(1, 28),
    photo_form=_form(3, 32),
    groups={
        "clothes": "T-shirt,trouser,pullover,dress,coat,shirt",
        "shoes": "sandal,sneaker,ankle boot",
    },
)
TINY = World(
    data="shapes",
    photos="shapes:300",
    form=_form(1, 16),
    photo_form=_form(3, 16),
    groups={"round": "circle,star"},
    has_own_photos=True,
    num_train="300",
    sizes=(50, 200),
    steps=60,
    suffix="-laptop",
    eye=(8, 16),
)

WIDTHS = (2, 8, 32, 128)
"""Numbers of a code."""
CELL_WIDTHS = (1, 2, 4, 8)
"""Whole numbers of each cell's code; the more, the larger the file."""
LEVELS = 7
"""Whole numbers to choose from."""
STARTS = {
    "an autoencoder": (),
    "a denoiser": ("data.noise.gaussian=0.3", "data.noise.square=10"),
}
"""What a classifier may begin with, and what spoils the pictures that this one learns from."""


def _pictures(world: World, _folder: Path) -> list[Run]:
    data, end = (world.named(),), world.suffix
    found = [
        Run(
            f"autoencoder {width}",
            f"hinton2006{end}",
            data,
            (*world.form, f"model.encoder.bottleneck.dim={width}"),
        )
        for width in WIDTHS
    ]
    found.append(Run("variational", f"kingma2014{end}", data, world.form))
    found.append(Run("denoiser", f"vincent2008{end}", data, world.form))
    half = int(world.form[1].rpartition("=")[2]) // 2
    small = (*world.form, f"data.source.size={half}")
    found.append(Run("super-resolution", f"super-resolution{end}", data, small))
    photos = (world.photos,)
    found.append(Run("super-resolution of photos", f"super-resolution{end}", photos))
    found.append(Run("colouring of photos", f"colouring{end}", photos))
    return found


def _anomalies(world: World, _folder: Path) -> list[Run]:
    """Plan autoencoders that learn some labels; the others will be odd."""
    return [
        Run(
            f"{group} {width}",
            f"hinton2006{world.suffix}",
            (world.named(f"only={labels}"),),
            (
                *world.form,
                *world.lasting(world.steps),
                f"model.encoder.bottleneck.dim={width}",
            ),
        )
        for group, labels in world.groups.items()
        for width in WIDTHS
    ]


def _compression(world: World, _folder: Path) -> list[Run]:
    """Plan autoencoders whose cells have codes of whole numbers, fewer and more of them."""
    forms = ((world.named(), world.form), (world.photos, world.photo_form))
    return [
        Run(
            f"{data.partition(':')[0]} {'in colour ' if form is world.photo_form else ''}{width}",
            f"hinton2006{world.suffix}",
            (data,),
            (
                *form,
                *world.grid("model.encoder.encoder"),
                *world.lasting(2 * world.steps),
                "model.encoder.of=states",
                "model.encoder.bottleneck.kind=rounded",
                f"model.encoder.bottleneck.levels={LEVELS}",
                f"model.encoder.bottleneck.dim={width}",
                f"model.generator.widths={list(reversed(world.eye))}",
                f"model.generator.blocks={[1] * len(world.eye)}",
            ),
        )
        for data, form in forms
        for width in CELL_WIDTHS
    ]


def _features(world: World, _folder: Path) -> list[Run]:
    """Plan classifiers with few labels: from nothing, and begun with what needed no label."""
    found = [
        Run(
            name,
            f"hinton2006{world.suffix}",
            (world.named(),),
            (
                *world.form,
                *noise,
                *world.grid("model.encoder.encoder"),
                *world.lasting(world.steps),
                "model.encoder.of=states",
                "model.encoder.bottleneck.dim=8",
                f"model.generator.widths={list(reversed(world.eye))}",
                f"model.generator.blocks={[1] * len(world.eye)}",
            ),
        )
        for name, noise in STARTS.items()
    ]
    common = (*world.form[:2], *world.lasting(max(60, world.steps // 4)))
    common += ("data.source.augmentation.crop=2", "data.source.augmentation.cutout=0")
    for size in world.sizes:
        for seed in (1, 2, 3):
            data = (f"{world.data}:{size}",)
            name, recipe = f"{size} labels", f"he2016{world.suffix}"
            eye = world.grid("model.encoder")
            found.append(Run(f"{name} from nothing", recipe, data, (*common, *eye), seed))
            for start in STARTS:
                place = Run(start, "", ()).folder
                words = (*common, f"init_from={{folder}}/{place}")
                need, frozen = (place,), 'train.freeze=["encoder"]'
                begun = f"{name} begun with {start}"
                found.append(Run(begun, recipe, data, words, seed, need))
                found.append(Run(f"{begun} frozen", recipe, data, (*words, frozen), seed, need))
    return found


PLANS = {
    "pictures": _pictures,
    "anomalies": _anomalies,
    "compression": _compression,
    "features": _features,
}


def main() -> None:
    """Train the runs of some experiments and gather what they measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="drawn shapes, small models")
    parser.add_argument("--eye", type=int, nargs="+", help="widths of encoders that leave a grid")
    asked = conduct.arguments(parser, PLANS)
    world = TINY if asked.tiny else FULL
    world = replace(world, eye=tuple(asked.eye)) if asked.eye else world
    plans = {name: partial(plan, world) for name, plan in PLANS.items()}
    conduct.experiments(plans, asked, gather=partial(_gather, world), join=partial(_join, world))


def _gather(world: World, run: Run, place: Path) -> dict[str, Any]:
    told = conduct.describe(run, place)
    told["data"] = run.data[0]
    experiment = place.parent.name
    if experiment == "pictures":
        is_shown = world.has_own_photos or not run.name.endswith("of photos")
        return {**told, **representations.of_picture(place, run.data[0], is_shown=is_shown)}
    if experiment == "anomalies":
        normal = run.data[0]
        odd = normal.replace("only=", "without=")
        return {**told, "group": run.name.rpartition(" ")[0]} | {
            "anomalies": representations.of_anomalies(place, normal, odd)
        }
    if experiment == "compression":
        return {**told, **representations.of_compression(place, run.data[0])}
    return {**told, "start": _start_of(run), "is_frozen": run.name.endswith(" frozen")}


def _start_of(run: Run) -> str:
    """Return what a classifier began with; of the starts themselves, nothing."""
    begun = run.name.partition(" begun with ")[2].removesuffix(" frozen")
    return begun or ("" if run.name in STARTS else "nothing")


def _join(world: World, name: str, folder: Path) -> list[dict[str, Any]]:
    """Tell what JPEG makes of the images that were compressed."""
    if name != "compression":
        return []
    return [representations.of_jpeg(place, data) for data, place in _first_of(world, folder)]


def _first_of(world: World, folder: Path) -> list[tuple[str, Path]]:
    """Return the data of a finished run for each form of images, and the run's folder."""
    found: dict[str, tuple[str, Path]] = {}
    for run in _compression(world, folder):
        place = folder / run.folder
        if (place / runs.METRICS).exists():
            found.setdefault(run.name.rpartition(" ")[0], (run.data[0], place))
    return list(found.values())


if __name__ == "__main__":
    main()
