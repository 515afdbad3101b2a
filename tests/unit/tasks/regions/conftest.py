"""Fixtures of the tasks that predict regions of images, on small rendered data sets."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from regard.data.datasets.synthetic import scenes
from regard.data.datasets.synthetic.scenes import load_scenes
from regard.data.text.readers import write_examples
from regard.runs.recipes import load_recipe
from regard.runs.request import Request
from regard.runs.train import train
from regard.tasks.regions.grounding import GroundingTask
from regard.tasks.regions.segmentation import SegmentationTask

TINY = ("data.batch.max_sentences=8", "train.max_epochs=2")


@dataclass(frozen=True)
class Case:
    """A task with its data set and a tiny recipe."""

    task_class: type
    data: str
    recipe_name: str
    settings: tuple[str, ...]
    image_settings: str
    """Prefix of the settings of the source image."""
    file_name: str
    write: Callable
    """Writes examples to a file."""

    def recipe(self, *overrides):
        """Return the tiny recipe with further overrides."""
        return load_recipe(self.recipe_name, (*TINY, *self.settings, *overrides))

    def prepare(self, examples, *overrides, **options):
        """Return an untrained task."""
        cpu = torch.device("cpu")
        return self.task_class.prepare(self.recipe(*overrides), examples, device=cpu, **options)


def write_columns(path: Path, examples) -> None:
    """Write phrases, images and boxes as columns."""
    lines = ["\t".join((*example.source, example.target)) for example in examples]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


CASES = {
    "segmentation": Case(
        SegmentationTask,
        data="regions,24",
        recipe_name="scenes-segmentation-laptop",
        settings=("model.encoder.widths=[8]", "model.encoder.blocks=[1]"),
        image_settings="data.source",
        file_name="{}.jsonl",
        write=write_examples,
    ),
    "grounding": Case(
        GroundingTask,
        data="boxes,24",
        recipe_name="scenes-grounding-laptop",
        settings=("model.image.widths=[8]", "model.image.blocks=[1]", "model.text.dim=8"),
        image_settings="data.source.image",
        file_name="{}.tsv",
        write=write_columns,
    ),
}


@pytest.fixture(scope="session")
def cases():
    return CASES


@pytest.fixture(scope="module", params=CASES)
def case(request, cases):
    """Each task in turn; a module about one task overrides this fixture."""
    return cases[request.param]


@pytest.fixture(scope="module")
def examples(case):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scenes, "NUM_HELD_OUT", 6)
        return load_scenes(case.data, 0)


@pytest.fixture
def task(case, examples):
    """An untrained task with enlarged weights, so that errors are visible in its outputs."""
    task = case.prepare(examples.train)
    with torch.no_grad():
        for parameter in task.model.parameters():
            parameter.mul_(1.5)
    return task


@pytest.fixture(scope="module")
def trained(case, examples, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    paths = {split: folder / case.file_name.format(split) for split in ("train", "valid", "test")}
    for split, path in paths.items():
        case.write(path, getattr(examples, split))
    data, valid, test = ((str(path),) for path in paths.values())
    return train(
        Request(
            data=data,
            valid=valid,
            test=test,
            recipe=case.recipe_name,
            settings=(*TINY, *case.settings),
            out=folder / "run",
            device="cpu",
        )
    )
