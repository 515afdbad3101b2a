"""Behaviour that segmentation and grounding share."""

import math

import numpy as np
import pytest
import torch

from regard.core.errors import ConfigError, DataError
from regard.data.datasets.synthetic.scenes import render
from regard.data.text.field import texts_of
from regard.runs.folder import load


def test_validation_and_evaluation_measure_the_same(task, examples):
    with torch.no_grad():
        validation = task.validation(examples.test)()
    results = task.evaluate(examples.test).results
    assert validation.value == validation.metrics["iou"] == results["iou"].value
    assert validation.metrics["accuracy"] == results["accuracy"].value


def test_loss_can_be_the_criterion_for_the_best_weights(case, examples):
    task = case.prepare(examples.train, "validation.metric=loss")
    with torch.no_grad():
        validation = task.validation(examples.valid)()
    assert validation.value == -validation.metrics["loss"]


def test_map_holds_the_image_and_its_rows_sum_to_one(task, examples):
    example = examples.test[0]
    (attention,) = task.attend([example])
    assert attention.grid == (16, 16)
    assert torch.allclose(attention.weights.sum(-1), torch.ones(()))
    assert np.array_equal(attention.image, np.asarray(render(texts_of(example.source)[-1])))


def test_empty_line_has_an_empty_prediction(task, examples):
    (first,), (second,) = task.predict(["", examples.test[0].source])
    assert first.text == "" and second.text
    assert task.predict([]) == []


def test_loaded_run_predicts_as_the_trained_one(trained, examples):
    sources = [example.source for example in examples.test]
    assert load(trained.folder, "cpu").predict(sources) == trained.predictor.predict(sources)
    assert math.isfinite(trained.evaluation.results["iou"].value)


def test_empty_test_set_is_refused(task):
    with pytest.raises(DataError, match="nothing to evaluate"):
        task.evaluate([])


@pytest.mark.parametrize(
    ("setting", "value", "rule"),
    [
        ("fit", "crop", "'squash'.*but is 'crop'"),
        ("augmentation.flip", "true", "false.*but is true"),
        ("augmentation.crop", "4", "0.*but is 4"),
        ("augmentation.zoom", "0.3", r"0.*but is 0\.3"),
    ],
)
def test_settings_that_move_the_image_are_refused(case, setting, value, rule):
    name = f"{case.image_settings}.{setting}"
    with pytest.raises(ConfigError, match=f"`{name}` must be {rule}"):
        case.recipe(f"{name}={value}")
