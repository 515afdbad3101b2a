"""Classification and generation with videos as sources."""

import pytest
import torch

from regard.core.config import from_dict
from regard.core.errors import ConfigError, DataError
from regard.data.example import Example
from regard.tasks.attention_plots import attention_tiles, num_columns
from regard.tasks.classification.recipe import ClassificationRecipe
from regard.tasks.classification.task import ClassificationTask
from regard.tasks.generation.recipe import Recipe
from regard.tasks.generation.task import Predictor
from regard.tasks.reading import read_inputs, read_labelled_texts, read_pairs

CPU = torch.device("cpu")
SOURCE = {"kind": "video", "size": 8, "num_frames": 3}
ENCODER = {
    "kind": "video",
    "num_layers": 1,
    "num_heads": 2,
    "dropout": 0.0,
    "image": {"kind": "resnet", "widths": (4, 8), "blocks": (1, 1)},
}
DECODER = {"kind": "transformer", "dim": 8, "num_layers": 1, "num_heads": 2, "dropout": 0.0}
CAPTIONS = [Example(f"moving/0/{n}", f"it moves {way}") for n, way in enumerate(("up", "down"))]
LABELS = [Example("moving/0/0", "up"), Example("moving/0/1", "down")]


@pytest.fixture(scope="module")
def captioner():
    model = {"encoder": ENCODER, "decoder": DECODER}
    recipe = from_dict(Recipe, {"data": {"source": SOURCE}, "model": model})
    return Predictor.prepare(recipe, CAPTIONS, device=CPU)


@pytest.fixture(scope="module")
def classifier():
    recipe = from_dict(
        ClassificationRecipe, {"data": {"source": SOURCE}, "model": {"encoder": ENCODER}}
    )
    return ClassificationTask.prepare(recipe, LABELS, device=CPU)


@pytest.fixture(params=["captioner", "classifier"])
def task(request):
    return request.getfixturevalue(request.param)


def examples_of(task):
    return CAPTIONS if isinstance(task, Predictor) else LABELS


def test_scores_alone_equal_scores_in_a_batch(task):
    together = [found.log_prob for found in task.score(examples_of(task))]
    alone = [task.score([example])[0].log_prob for example in examples_of(task)]
    assert together == pytest.approx(alone, abs=1e-5)


def test_saved_task_scores_the_same(task, tmp_path):
    task.save(tmp_path)
    opened = type(task).open_untrained(task.recipe, tmp_path, device=CPU)
    opened.model.load_state_dict(task.model.state_dict())
    assert opened.score(examples_of(task)) == task.score(examples_of(task))


def test_every_weight_has_a_gradient(task):
    task.model.train()
    for batch in task.training_batches(examples_of(task)).epoch(0):
        task.loss(batch).total.backward()
    task.model.eval()
    without = [name for name, weight in task.model.named_parameters() if weight.grad is None]
    task.model.zero_grad()
    assert without == []


def test_attention_is_over_frames_rows_and_columns(task):
    for found, example in zip(task.attend(examples_of(task)), examples_of(task), strict=True):
        assert found.grid == (3, 4, 4) and len(found.source) == 48
        assert found.source[0] == "1,1,1" and found.source[-1] == "3,4,4"
        assert found.num_text_tokens == 0
        assert found.image.shape == (3, 8, 8, 3)
        rows = found.mean().sum(-1)
        assert torch.allclose(rows, torch.ones(len(found.target)), atol=1e-5), example
        assert num_columns(found) == 3
        # The frames, and the frames under each token of the target.
        assert len(attention_tiles(found)) == 3 * (1 + len(found.target))


def test_without_attention_the_map_is_a_saliency():
    model = {"encoder": {**ENCODER, "over_time": "gru"}}
    recipe = from_dict(ClassificationRecipe, {"data": {"source": SOURCE}, "model": model})
    task = ClassificationTask.prepare(recipe, LABELS, device=CPU)
    for found in task.attend(LABELS):
        assert (found.kind, found.grid) == ("gradient x activation", (3, 4, 4))
        assert float(found.weights.sum()) == pytest.approx(1.0, abs=1e-5)


def test_a_missing_video_is_named(task):
    with pytest.raises(DataError, match=r"nowhere\.gif does not exist"):
        task.predict(["/nowhere.gif"])


def test_an_encoder_of_images_is_refused():
    model = {"encoder": ENCODER["image"], "decoder": DECODER}
    with pytest.raises(ConfigError, match="reads images, but the source is videos"):
        from_dict(Recipe, {"data": {"source": SOURCE}, "model": model})


def test_data_sets_and_files_are_read(captioner, classifier, tmp_path):
    splits = read_pairs(("moving:50",), (), (), config=captioner.recipe.data)
    assert len(splits.train) == 50 and splits.train[0].source.startswith("moving/0/")
    splits = read_labelled_texts(("moving:directions,50",), (), (), config=classifier.recipe.data)
    assert {example.target for example in splits.train} == {"left", "right", "up", "down"}
    lines = "".join(
        f"moving/0/{number}\t{'up' if number % 2 else 'down'}\n" for number in range(60)
    )
    (tmp_path / "labels.tsv").write_text(lines, encoding="utf-8")
    path = (str(tmp_path / "labels.tsv"),)
    for read, task in ((read_pairs, captioner), (read_labelled_texts, classifier)):
        splits = read(path, (), (), config=task.recipe.data)
        assert len(splits.train) + len(splits.valid) + len(splits.test) == 60
    assert list(read_inputs("moving/0/7", captioner.recipe)) == ["moving/0/7"]
