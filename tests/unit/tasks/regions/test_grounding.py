"""Grounding: boxes of the objects that phrases name."""

import math

import pytest
import torch

from regard.core.errors import ConfigError, DataError
from regard.data.example import Example
from regard.metrics.vision.regions import box_iou, parse_box
from regard.models.heads.regions import cell_centres
from regard.runs.folder import load
from regard.tasks.regions.grounding import GroundingTask


@pytest.fixture(scope="module")
def case(cases):
    return cases["grounding"]


def test_prediction_is_a_box_within_the_image(task, examples):
    for (prediction,) in task.predict([example.source for example in examples.test]):
        box = parse_box(prediction.text)
        assert min(box) >= 0 and max(box) <= 1
        assert prediction.log_prob <= 1e-6


def test_batched_equals_alone_and_a_line_equals_a_pair(task, examples):
    sources = [example.source for example in examples.test]
    for source, (batched,) in zip(sources, task.predict(sources), strict=True):
        ((alone,),) = task.predict(["\t".join(source)])
        assert parse_box(alone.text) == pytest.approx(parse_box(batched.text), abs=2e-3)
        assert alone.log_prob == pytest.approx(batched.log_prob, abs=1e-3)


def test_probability_of_a_box_is_the_attention_on_it(task, examples):
    example = examples.test[0]
    (attention,) = task.attend([example])
    centres = cell_centres(attention.grid, like=attention.weights)
    box = (0.25, 0.5, 0.75, 1.0)  # its edges run between cells
    inside = ((centres > torch.tensor(box[:2])) & (centres < torch.tensor(box[2:]))).all(-1)
    (scored,) = task.score([Example(example.source, "0.25 0.5 0.75 1.0")])
    share = float(attention.weights[0, 0, 0, inside].sum())
    assert math.exp(scored.log_prob) == pytest.approx(share, abs=1e-5)
    (full_image,) = task.score([Example(example.source, "0 0 1 1")])
    assert full_image.log_prob == pytest.approx(0, abs=1e-5)


def test_map_has_one_row_for_the_phrase(task, examples):
    phrase, reference = examples.test[0].source
    (attention,) = task.attend([Example(f"{phrase}\t{reference}")])
    assert attention.target == (phrase,)
    assert attention.weights.shape == (1, 1, 1, 256)


def test_loss_is_the_weighted_sum_of_distance_and_overlap(task, examples):
    batch = next(task.training_batches(examples.train).epoch(0))
    targets = [examples.train[row].target for row in batch.rows]
    expected = 0.0
    with torch.no_grad():
        boxes = task.forward(batch).boxes
    for target, box in zip(targets, boxes, strict=True):
        true = torch.tensor(parse_box(target))
        distance = ((box[:2] + box[2:]) - (true[:2] + true[2:])).abs().sum() / 2
        distance += ((box[2:] - box[:2]) - (true[2:] - true[:2])).abs().sum()
        hull = (torch.maximum(box, true)[2:] - torch.minimum(box, true)[:2]).prod()
        areas = [(one[2:] - one[:2]).prod() for one in (box, true)]
        iou = float(box_iou(box.numpy(), true.numpy()))
        union = (areas[0] + areas[1]) / (1 + iou)
        expected += 5 * float(distance) + 2 * (1 - iou + float((hull - union) / hull))
    loss = task.loss(batch)
    assert float(loss.total.detach()) == pytest.approx(expected, rel=1e-3)
    assert int(loss.count) == len(targets)


def test_loss_weights_are_settings(case, task, examples):
    batch = next(task.training_batches(examples.train).epoch(0))
    total = float(task.loss(batch).total.detach())
    terms = []
    for override in ("loss.distance=0", "loss.overlap=0"):
        task.recipe = case.recipe(override)
        terms.append(float(task.loss(batch).total.detach()))
    assert sum(terms) == pytest.approx(total, rel=1e-4)


def test_evaluation_measures_pointing_and_keeps_sources(task, examples):
    evaluation = task.evaluate(examples.test, num_bootstrap=20)
    assert 0 <= evaluation.results["pointing"].value <= 100
    assert evaluation.results["pointing"].detail["count"] == len(examples.test)
    assert evaluation.sources[0] == "\t".join(examples.test[0].source)


def test_fine_tuning_starts_from_all_of_a_run(trained, examples):
    start = load(trained.folder, "cpu")
    task = GroundingTask.prepare(
        start.recipe, examples.train, device=torch.device("cpu"), init_from=start
    )
    sources = [example.source for example in examples.test]
    assert task.predict(sources) == start.predict(sources)


def test_fine_tuning_a_run_of_another_task_is_refused(case, tiny_run, examples):
    with pytest.raises(ConfigError, match="`init_from` must be a run for the task 'grounding'"):
        case.prepare(examples.train, init_from=tiny_run.predictor)


def test_phrase_without_an_image_is_refused(task):
    with pytest.raises(DataError, match="must be a text and an image"):
        task.predict(["large red circle"])


def test_target_that_is_no_box_is_refused(task, examples):
    with pytest.raises(DataError, match="A box must be four numbers"):
        task.evaluate([Example(examples.test[0].source, "left")])


def test_negative_weight_is_refused(case):
    with pytest.raises(ConfigError, match=r"`loss\.distance` must be at least 0"):
        case.recipe("loss.distance=-1")
