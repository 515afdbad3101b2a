"""Labels of patches: every verb of the task, on scenes that are drawn on the spot."""

import math
from collections import Counter

import numpy as np
import pytest
import torch

from regard.core.errors import ConfigError, DataError
from regard.data.datasets.synthetic import scenes
from regard.data.datasets.synthetic.scenes import load_scenes, render
from regard.data.example import Example
from regard.data.text.readers import write_examples
from regard.runs.folder import load
from regard.runs.recipes import load_recipe
from regard.runs.request import Request
from regard.runs.train import train
from regard.tasks.regions.segmentation import PROBABILITY, SegmentationTask

CPU = torch.device("cpu")
TINY = (
    "data.batch.max_sentences=8",
    "model.encoder.widths=[8]",
    "model.encoder.blocks=[1]",
    "train.max_epochs=2",
)


@pytest.fixture(scope="module")
def examples():
    patch = pytest.MonkeyPatch()
    patch.setattr(scenes, "NUM_HELD_OUT", 6)
    found = load_scenes("regions,24", 0)
    patch.undo()
    return found


@pytest.fixture
def task(examples):
    recipe = load_recipe("scenes-segmentation-laptop", TINY)
    return SegmentationTask.prepare(recipe, examples.train, device=CPU)


@pytest.fixture(scope="module")
def trained(examples, tmp_path_factory):
    folder = tmp_path_factory.mktemp("segmentation")
    for side in ("train", "valid", "test"):
        write_examples(folder / f"{side}.jsonl", getattr(examples, side))
    data, valid, test = ((str(folder / f"{s}.jsonl"),) for s in ("train", "valid", "test"))
    return train(
        Request(
            data=data,
            valid=valid,
            test=test,
            recipe="scenes-segmentation-laptop",
            settings=TINY,
            out=folder / "run",
            device="cpu",
        )
    )


def test_grid_is_that_of_the_labels_and_asking_for_it_changes_nothing(task):
    task.model.train()
    before = {name: value.clone() for name, value in task.model.state_dict().items()}
    assert task.grid == (16, 16)
    assert task.model.training
    assert all(torch.equal(before[name], v) for name, v in task.model.state_dict().items())


def test_answer_is_as_many_rows_of_labels_and_its_pieces_sum_up(task, examples):
    for (found,) in task.predict([e.source for e in examples.test]):
        rows = found.text.split()
        assert [len(row) for row in rows] == [16] * 16
        assert set("".join(rows)) <= set(task.labels.names)
        assert "".join(found.tokens) == "".join(rows)
        assert sum(found.token_log_probs) == pytest.approx(found.log_prob, rel=1e-4)


def test_batched_equals_alone(task, examples):
    sources = [e.source for e in examples.test]
    together = task.predict(sources)
    for source, (found,) in zip(sources, together, strict=True):
        ((alone,),) = task.predict([source])
        assert alone.text == found.text
        assert alone.log_prob == pytest.approx(found.log_prob, rel=1e-4)


def test_score_of_an_answer_is_its_log_probability(task, examples):
    sources = [e.source for e in examples.test]
    answers = [found[0] for found in task.predict(sources)]
    scored = task.score([Example(s, a.text) for s, a in zip(sources, answers, strict=True)])
    for one, answer in zip(scored, answers, strict=True):
        assert one.text == answer.text
        assert one.log_prob == pytest.approx(answer.log_prob, rel=1e-4)


def test_loss_is_the_mean_negative_log_probability_of_the_cells(task, examples):
    batch = next(task.training_batches(examples.train).epoch(0))
    found = task.loss(batch)
    asked = [examples.train[row] for row in batch.rows]
    expected = -sum(one.log_prob for one in task.score(asked))
    assert float(found.total.detach()) == pytest.approx(expected, rel=1e-4)
    assert int(found.count) == len(asked) * 256


def test_validation_measures_what_evaluation_does(task, examples):
    with torch.no_grad():
        found = task.validation(examples.test)()
    evaluation = task.evaluate(examples.test)
    assert found.value == found.metrics["iou"] == evaluation.results["iou"].value
    assert found.metrics["accuracy"] == evaluation.results["accuracy"].value
    assert {"noisy", "plain"} & {group.name for group in evaluation.by_tag}


def test_loss_can_decide_which_weights_are_best(examples):
    recipe = load_recipe("scenes-segmentation-laptop", (*TINY, "validation.metric=loss"))
    task = SegmentationTask.prepare(recipe, examples.train, device=CPU)
    with torch.no_grad():
        found = task.validation(examples.valid)()
    assert found.value == -found.metrics["loss"]


def test_map_is_the_probability_of_each_label_over_the_image(task, examples):
    example = examples.test[0]
    (found,) = task.attend([example])
    assert found.kind == PROBABILITY and found.grid == (16, 16)
    assert found.target == tuple(sorted(set("".join(example.target.split()))))
    assert found.weights.shape == (1, 1, len(found.target), 256)
    assert torch.allclose(found.weights.sum(-1), torch.ones(()))
    assert np.array_equal(found.image, np.asarray(render(example.source)))


def test_empty_line_has_the_empty_answer(task):
    (first,), (second,) = task.predict(["", "scenes/0/3"])
    assert first.text == "" and second.text
    assert task.predict([]) == []


def test_what_is_said_beside_a_picture_counts_the_cells(task):
    example, written = task.example_to_show("scenes/0/3")
    counts = Counter("".join(example.target.split()))
    assert written == f"{', '.join(f'{k} {counts[k]}' for k in sorted(counts))} of 256 cells"


def test_opened_run_answers_as_the_one_that_was_trained(trained, examples):
    opened = load(trained.folder, "cpu")
    sources = [e.source for e in examples.test]
    assert opened.predict(sources) == trained.predictor.predict(sources)
    assert math.isfinite(trained.evaluation.results["iou"].value)


def test_encoder_of_another_run_is_taken_over(trained, examples):
    start = load(trained.folder, "cpu")
    recipe = load_recipe("scenes-segmentation-laptop", ("seed=9",))
    begun = SegmentationTask.prepare(recipe, examples.train, device=CPU, init_from=start)
    assert begun.recipe.model.encoder == start.recipe.model.encoder
    theirs = start.model.encoder.state_dict()
    assert all(torch.equal(v, theirs[n]) for n, v in begun.model.encoder.state_dict().items())
    assert not torch.equal(begun.model.output.weight, start.model.output.weight)


def test_labels_on_another_grid_are_refused(task):
    with pytest.raises(DataError, match="scenes/0/3 must be on the grid.*16 x 16.*are 1 x 2"):
        task.score([Example("scenes/0/3", "oo")])


def test_label_that_was_never_seen_is_refused(task):
    with pytest.raises(DataError, match="'z' is not a label"):
        task.evaluate([Example("scenes/0/3", " ".join(["z" * 16] * 16))])


def test_empty_test_set_is_refused(task):
    with pytest.raises(DataError, match="nothing to evaluate"):
        task.evaluate([])


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("data.source.fit=crop", r"`data\.source\.fit` must be 'squash'.*but is 'crop'"),
        ("data.source.augmentation.flip=true", r"flip` must be false.*but is true"),
        ("data.source.augmentation.crop=4", r"`data\.source\.augmentation\.crop` must be 0.*is 4"),
        ("data.source.augmentation.zoom=0.3", r"augmentation\.zoom` must be 0.*is 0\.3"),
    ],
)
def test_images_whose_content_would_move_are_refused(word, message):
    with pytest.raises(ConfigError, match=message):
        load_recipe("scenes-segmentation-laptop", [word])
