"""Segmentation: labels of the cells of an image."""

from collections import Counter

import pytest
import torch

from regard.core.errors import DataError
from regard.data.example import Example
from regard.runs.folder import load
from regard.runs.recipes import load_recipe
from regard.tasks.regions.segmentation import PROBABILITY, SegmentationTask


@pytest.fixture(scope="module")
def case(cases):
    return cases["segmentation"]


def test_grid_is_that_of_the_labels_and_computing_it_changes_no_state(task):
    task.model.train()
    before = {name: value.clone() for name, value in task.model.state_dict().items()}
    assert task.grid == (16, 16)
    assert task.model.training
    assert all(torch.equal(before[name], v) for name, v in task.model.state_dict().items())


def test_prediction_is_a_grid_of_labels_and_its_log_probs_sum_up(task, examples):
    for (prediction,) in task.predict([example.source for example in examples.test]):
        rows = prediction.text.split()
        assert [len(row) for row in rows] == [16] * 16
        assert set("".join(rows)) <= set(task.labels.names)
        assert "".join(prediction.tokens) == "".join(rows)
        assert sum(prediction.token_log_probs) == pytest.approx(prediction.log_prob, rel=1e-4)


def test_batched_equals_alone(task, examples):
    sources = [example.source for example in examples.test]
    for source, (batched,) in zip(sources, task.predict(sources), strict=True):
        ((alone,),) = task.predict([source])
        assert alone.text == batched.text
        assert alone.log_prob == pytest.approx(batched.log_prob, rel=1e-4)


def test_score_of_a_prediction_is_its_log_probability(task, examples):
    sources = [example.source for example in examples.test]
    predictions = [best[0] for best in task.predict(sources)]
    scored = task.score([Example(s, p.text) for s, p in zip(sources, predictions, strict=True)])
    for score, prediction in zip(scored, predictions, strict=True):
        assert score.text == prediction.text
        assert score.log_prob == pytest.approx(prediction.log_prob, rel=1e-4)


def test_loss_is_the_negative_log_probability_of_the_cells(task, examples):
    batch = next(task.training_batches(examples.train).epoch(0))
    loss = task.loss(batch)
    batch_examples = [examples.train[row] for row in batch.rows]
    expected = -sum(score.log_prob for score in task.score(batch_examples))
    assert float(loss.total.detach()) == pytest.approx(expected, rel=1e-4)
    assert int(loss.count) == len(batch_examples) * 256


def test_evaluation_has_results_by_tag(task, examples):
    evaluation = task.evaluate(examples.test)
    assert {"noisy", "plain"} & {group.name for group in evaluation.by_tag}


def test_map_has_a_row_for_each_label_of_the_target(task, examples):
    example = examples.test[0]
    (attention,) = task.attend([example])
    assert attention.kind == PROBABILITY
    assert attention.target == tuple(sorted(set("".join(example.target.split()))))
    assert attention.weights.shape == (1, 1, len(attention.target), 256)


def test_text_beside_the_plot_counts_the_cells_of_each_label(task):
    example, text = task.example_to_show("scenes/0/3")
    counts = Counter("".join(example.target.split()))
    assert text == f"{', '.join(f'{k} {counts[k]}' for k in sorted(counts))} of 256 cells"


def test_fine_tuning_starts_from_the_encoder_of_a_run(trained, examples):
    start = load(trained.folder, "cpu")
    recipe = load_recipe("scenes-segmentation-laptop", ("seed=9",))
    task = SegmentationTask.prepare(
        recipe, examples.train, device=torch.device("cpu"), init_from=start
    )
    assert task.recipe.model.encoder == start.recipe.model.encoder
    weights = start.model.encoder.state_dict()
    assert all(torch.equal(v, weights[n]) for n, v in task.model.encoder.state_dict().items())
    assert not torch.equal(task.model.output.weight, start.model.output.weight)


def test_labels_on_another_grid_are_refused(task):
    with pytest.raises(DataError, match="scenes/0/3 must be on the grid.*16 x 16.*are 1 x 2"):
        task.score([Example("scenes/0/3", "oo")])


def test_unknown_label_is_refused(task):
    with pytest.raises(DataError, match="'z' is not a label"):
        task.evaluate([Example("scenes/0/3", " ".join(["z" * 16] * 16))])
