"""Boxes of phrases: every verb of the task, on scenes that are drawn on the spot."""

import math

import numpy as np
import pytest
import torch

from regard.core.errors import ConfigError, DataError
from regard.data.datasets.synthetic import scenes
from regard.data.datasets.synthetic.scenes import load_scenes, render
from regard.data.example import Example
from regard.metrics.vision.regions import box_iou, parse_box
from regard.models.heads.regions import cell_centres
from regard.runs.folder import load
from regard.runs.recipes import load_recipe
from regard.runs.request import Request
from regard.runs.train import train
from regard.tasks.regions.grounding import GroundingTask

CPU = torch.device("cpu")
TINY = (
    "data.batch.max_sentences=8",
    "model.image.widths=[8]",
    "model.image.blocks=[1]",
    "model.text.dim=8",
    "train.max_epochs=2",
)


@pytest.fixture(scope="module")
def examples():
    patch = pytest.MonkeyPatch()
    patch.setattr(scenes, "NUM_HELD_OUT", 6)
    found = load_scenes("boxes,24", 0)
    patch.undo()
    return found


@pytest.fixture
def task(examples):
    """An untrained task, its weights larger than fresh ones, so that mistakes show."""
    recipe = load_recipe("scenes-grounding-laptop", TINY)
    task = GroundingTask.prepare(recipe, examples.train, device=CPU)
    with torch.no_grad():
        for parameter in task.model.parameters():
            parameter.mul_(1.5)
    return task


@pytest.fixture(scope="module")
def trained(examples, tmp_path_factory):
    folder = tmp_path_factory.mktemp("grounding")
    for side in ("train", "valid", "test"):
        lines = ["\t".join((*e.source, e.target)) for e in getattr(examples, side)]
        (folder / f"{side}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    data, valid, test = ((str(folder / f"{s}.tsv"),) for s in ("train", "valid", "test"))
    return train(
        Request(
            data=data,
            valid=valid,
            test=test,
            recipe="scenes-grounding-laptop",
            settings=TINY,
            out=folder / "run",
            device="cpu",
        )
    )


def test_answer_is_a_box_within_the_image(task, examples):
    for (found,) in task.predict([e.source for e in examples.test]):
        box = parse_box(found.text)
        assert min(box) >= 0 and max(box) <= 1
        assert found.log_prob <= 1e-6


def test_batched_equals_alone_and_a_line_equals_a_pair(task, examples):
    sources = [e.source for e in examples.test]
    for source, (found,) in zip(sources, task.predict(sources), strict=True):
        ((alone,),) = task.predict(["\t".join(source)])
        assert parse_box(alone.text) == pytest.approx(parse_box(found.text), abs=2e-3)
        assert alone.log_prob == pytest.approx(found.log_prob, abs=1e-3)


def test_probability_of_a_box_is_the_attention_that_falls_on_it(task, examples):
    example = examples.test[0]
    (found,) = task.attend([example])
    rows, columns = found.grid
    places = cell_centres(found.grid, like=found.weights)
    box = (0.25, 0.5, 0.75, 1.0)  # its edges run between cells
    inside = ((places > torch.tensor(box[:2])) & (places < torch.tensor(box[2:]))).all(-1)
    (scored,) = task.score([Example(example.source, "0.25 0.5 0.75 1.0")])
    share = float(found.weights[0, 0, 0, inside].sum())
    assert (rows, columns) == (16, 16)
    assert math.exp(scored.log_prob) == pytest.approx(share, abs=1e-5)
    (whole,) = task.score([Example(example.source, "0 0 1 1")])
    assert whole.log_prob == pytest.approx(0, abs=1e-5)


def test_map_shows_the_image_and_the_phrase(task, examples):
    phrase, reference = examples.test[0].source
    (found,) = task.attend([Example(f"{phrase}\t{reference}")])
    assert found.target == (phrase,)
    assert found.weights.shape == (1, 1, 1, 256)
    assert np.array_equal(found.image, np.asarray(render(reference)))


def test_loss_is_what_the_weights_of_the_recipe_say(task, examples):
    batch = next(task.training_batches(examples.train).epoch(0))
    asked = [examples.train[row] for row in batch.rows]
    expected = 0.0
    with torch.no_grad():
        boxes = task.forward(batch).boxes
    for example, box in zip(asked, boxes, strict=True):
        right = torch.tensor(parse_box(example.target))
        far = ((box[:2] + box[2:]) - (right[:2] + right[2:])).abs().sum() / 2
        far += ((box[2:] - box[:2]) - (right[2:] - right[:2])).abs().sum()
        around = (torch.maximum(box, right)[2:] - torch.minimum(box, right)[:2]).prod()
        areas = [(b[2:] - b[:2]).prod() for b in (box, right)]
        iou = float(box_iou(box.numpy(), right.numpy()))
        together = (areas[0] + areas[1]) / (1 + iou)
        expected += 5 * float(far) + 2 * (1 - iou + float((around - together) / around))
    found = task.loss(batch)
    assert float(found.total.detach()) == pytest.approx(expected, rel=1e-3)
    assert int(found.count) == len(asked)


def test_weights_of_the_loss_are_settings(task, examples):
    batch = next(task.training_batches(examples.train).epoch(0))
    whole = float(task.loss(batch).total.detach())
    parts = []
    for word in ("loss.distance=0", "loss.overlap=0"):
        task.recipe = load_recipe("scenes-grounding-laptop", (*TINY, word))
        parts.append(float(task.loss(batch).total.detach()))
    assert sum(parts) == pytest.approx(whole, rel=1e-4)


def test_validation_measures_what_evaluation_does(task, examples):
    with torch.no_grad():
        found = task.validation(examples.test)()
    evaluation = task.evaluate(examples.test, num_bootstrap=20)
    assert found.value == found.metrics["iou"] == evaluation.results["iou"].value
    assert found.metrics["accuracy"] == evaluation.results["accuracy"].value
    assert 0 <= evaluation.results["pointing"].value <= 100
    assert evaluation.results["pointing"].detail["count"] == len(examples.test)
    assert evaluation.sources[0] == "\t".join(examples.test[0].source)


def test_empty_line_has_the_empty_answer(task, examples):
    (first,), (second,) = task.predict(["", examples.test[0].source])
    assert first.text == "" and second.text
    assert task.predict([]) == []


def test_opened_run_answers_as_the_one_that_was_trained(trained, examples):
    sources = [e.source for e in examples.test]
    assert load(trained.folder, "cpu").predict(sources) == trained.predictor.predict(sources)


def test_training_can_go_on_from_a_run(trained, examples):
    start = load(trained.folder, "cpu")
    begun = GroundingTask.prepare(start.recipe, examples.train, device=CPU, init_from=start)
    sources = [e.source for e in examples.test]
    assert begun.predict(sources) == start.predict(sources)


def test_start_of_another_task_is_refused(tiny_run, examples):
    with pytest.raises(ConfigError, match="`init_from` must be a run for the task 'grounding'"):
        GroundingTask.prepare(
            load_recipe("scenes-grounding-laptop", TINY),
            examples.train,
            device=CPU,
            init_from=tiny_run.predictor,
        )


def test_phrase_without_an_image_is_refused(task):
    with pytest.raises(DataError, match="must be a text and an image, parted by a tab"):
        task.predict(["large red circle"])


def test_target_that_is_no_box_is_refused(task, examples):
    with pytest.raises(DataError, match="A box must be four numbers"):
        task.evaluate([Example(examples.test[0].source, "left")])


def test_empty_test_set_is_refused(task):
    with pytest.raises(DataError, match="nothing to evaluate"):
        task.evaluate([])


def test_images_whose_content_would_move_are_refused():
    with pytest.raises(ConfigError, match=r"`data\.source\.image\.fit` must be 'squash'"):
        load_recipe("scenes-grounding-laptop", ["data.source.image.fit=pad"])


def test_negative_weight_is_refused():
    with pytest.raises(ConfigError, match=r"`loss\.distance` must be at least 0"):
        load_recipe("scenes-grounding-laptop", ["loss.distance=-1"])
