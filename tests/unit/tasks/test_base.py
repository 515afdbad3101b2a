"""Features that every task shares, and the protocols that each task implements."""

import inspect

import pytest
import torch

from regard.data.example import Example
from regard.runs.recipes import load_recipe
from regard.search.settings import SearchConfig
from regard.tasks.base import (
    Attends,
    Autoencodes,
    Embeds,
    Generates,
    GeneratesImages,
    Scores,
)
from regard.tasks.search import search_with
from regard.tasks.source_task import EncoderTask
from regard.tasks.table import TASKS, recipe_class, task_class

GENERATING = {"generation", "language_model", "denoising", "autoencoding"}
IMAGES = [Example(f"scenes/0/{number}", "left" if number % 2 else "right") for number in range(4)]


def implements(task, protocol):
    """Return whether a class has all methods of a protocol."""
    names = [name for name in vars(protocol) if not name.startswith("_")]
    return all(hasattr(task, name) for name in names)


@pytest.mark.parametrize("name", TASKS)
def test_tasks_implement_protocols(name):
    task = task_class(recipe_class(name)())
    assert issubclass(task, Generates) == (name in GENERATING)
    assert implements(task, GeneratesImages) == (name == "image_to_image")
    assert implements(task, Attends) == (name != "image_to_image")
    assert implements(task, Autoencodes) == (name in ("autoencoding", "image_to_image"))
    assert implements(task, Embeds) == issubclass(task, EncoderTask) == (name != "grounding")
    assert implements(task, Scores)


@pytest.mark.parametrize("name", TASKS)
def test_only_tasks_that_generate_take_search_and_prefix(name):
    task = task_class(recipe_class(name)())
    parameters = inspect.signature(task.predict).parameters
    assert ({"search", "prefix"} <= set(parameters)) == (name in GENERATING)
    assert set(inspect.signature(task.evaluate).parameters) == {"self", "examples", "num_bootstrap"}


def test_recipes_are_found_by_the_name_of_their_task():
    assert all(recipe_class(name).task == name for name in TASKS)


def test_with_search_returns_a_copy_and_leaves_the_task_unchanged(tiny_run):
    task = tiny_run.predictor
    changed = task.with_search(SearchConfig(beams=7))
    assert changed.search.beams == changed.recipe.search.beams == 7
    assert task.search.beams != 7
    assert changed.model is task.model and changed.source is task.source


def test_more_predictions_need_more_beams(tiny_run):
    task = tiny_run.predictor
    assert search_with(task, beams=None, num_best=9).beams == 9
    assert search_with(task, beams=3).beams == 3


def test_task_without_search_is_saved_and_opened(tmp_path):
    recipe = load_recipe("he2016-laptop")
    task = task_class(recipe).prepare(recipe, IMAGES, device=torch.device("cpu"))
    assert search_with(task, beams=None) is None
    assert isinstance(task, Attends | Scores) and not isinstance(task, Generates)
    task.save(tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["labels.json", "source.image.json"]
    opened = task_class(recipe).open_untrained(recipe, tmp_path, device=torch.device("cpu"))
    assert opened.labels.names == task.labels.names
    before, after = task.model.state_dict(), opened.model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
