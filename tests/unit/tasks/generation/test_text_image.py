"""Classification and generation with a text and an image as source."""

import pytest
import torch

from regard.core.config import from_dict
from regard.core.errors import DataError
from regard.data.example import Example
from regard.tasks.attention_plots import attention_tiles
from regard.tasks.classification.recipe import ClassificationRecipe
from regard.tasks.classification.task import ClassificationTask
from regard.tasks.generation.recipe import Recipe
from regard.tasks.generation.task import Predictor

CPU = torch.device("cpu")
SOURCE = {
    "kind": "joined",
    "text": {"kind": "word", "vocab_size": 50},
    "image": {"kind": "image", "size": 8, "fit": "squash"},
}
BLOCK = {"dim": 8, "num_layers": 1, "num_heads": 2, "feed_forward_dim": 8, "dropout": 0.0}
ENCODER = {
    "kind": "joined",
    "num_layers": 1,
    "num_heads": 2,
    "text": {"kind": "transformer", **BLOCK},
    "image": {"kind": "vit", "patch": 4, **BLOCK},
}
EXAMPLES = [
    Example(("is it red", "shapes/0/1"), "yes"),
    Example(("is the large shape on the left blue", "shapes/0/2"), "no"),
    Example(("is it green", "shapes/0/3"), "no"),
]
LINE = "is it red\tshapes/0/1"


@pytest.fixture(scope="module")
def generator():
    decoder = {"kind": "transformer", **BLOCK}
    recipe = from_dict(
        Recipe, {"data": {"source": SOURCE}, "model": {"encoder": ENCODER, "decoder": decoder}}
    )
    return Predictor.prepare(recipe, EXAMPLES, device=CPU)


@pytest.fixture(scope="module")
def classifier():
    recipe = from_dict(
        ClassificationRecipe, {"data": {"source": SOURCE}, "model": {"encoder": ENCODER}}
    )
    return ClassificationTask.prepare(recipe, EXAMPLES, device=CPU)


@pytest.fixture(params=["generator", "classifier"])
def task(request):
    return request.getfixturevalue(request.param)


def test_line_is_predicted_as_its_pair(task):
    assert task.predict([LINE]) == task.predict([EXAMPLES[0].source])


def test_empty_line_has_an_empty_prediction(task):
    empty, filled = task.predict(["", LINE])
    assert empty[0].text == ""
    assert filled[0].tokens


def test_scores_alone_equal_scores_in_a_batch(task):
    together = [found.log_prob for found in task.score(EXAMPLES)]
    alone = [task.score([example])[0].log_prob for example in EXAMPLES]
    assert together == pytest.approx(alone, abs=1e-5)


def test_score_depends_on_the_image(task):
    first, other = task.score([EXAMPLES[0], Example(("is it red", "shapes/0/9"), "yes")])
    assert first.log_prob != pytest.approx(other.log_prob, abs=1e-6)


def test_every_weight_has_a_gradient(task):
    task.model.zero_grad()
    task.model.train()
    for batch in task.training_batches(EXAMPLES).epoch(0):
        task.loss(batch).total.backward()
    task.model.eval()
    without = [name for name, weight in task.model.named_parameters() if weight.grad is None]
    task.model.zero_grad()
    assert without == []


def test_saved_task_predicts_the_same(task, tmp_path):
    task.save(tmp_path)
    opened = type(task).open_untrained(task.recipe, tmp_path, device=CPU)
    opened.model.load_state_dict(task.model.state_dict())
    assert opened.predict([LINE]) == task.predict([LINE])


def test_a_text_without_an_image_is_refused(task):
    with pytest.raises(DataError, match="tab"):
        task.predict(["is it red"])


def test_generator_attends_to_words_and_cells(generator):
    for found, num_words in zip(generator.attend(EXAMPLES), (4, 9, 4), strict=True):
        assert found.grid == (2, 2)
        assert found.num_text_tokens == num_words
        # Padding between words and cells has no column.
        assert torch.allclose(found.mean().sum(-1), torch.ones(len(found.target)), atol=1e-5)
        words = found.text_only()
        assert words.source == found.source[:num_words]
        assert torch.equal(words.weights, found.weights[..., :num_words])
        assert len(attention_tiles(found)) == 1 + len(found.target)
        assert attention_tiles(words) == []


def test_map_of_a_classifier_with_joint_blocks_has_words_and_cells(classifier):
    for found, num_words in zip(classifier.attend(EXAMPLES), (5, 10, 5), strict=True):
        assert found.grid == (2, 2)
        assert found.num_text_tokens == num_words
        assert float(found.weights.sum()) == pytest.approx(1.0, abs=1e-5)
        assert len(attention_tiles(found)) == 2


def test_maps_of_a_batch_equal_those_of_single_examples(classifier):
    for together, example in zip(classifier.attend(EXAMPLES), EXAMPLES, strict=True):
        (alone,) = classifier.attend([example])
        assert torch.allclose(together.weights, alone.weights, atol=1e-5)


@pytest.mark.parametrize("pooling", ["summary", "mean"])
@pytest.mark.parametrize(
    "image", [ENCODER["image"], {"kind": "resnet", "widths": (4, 6, 8), "blocks": (1, 1, 1)}]
)
def test_map_of_a_classifier_without_joint_blocks_has_cells(image, pooling):
    model = {"encoder": {**ENCODER, "num_layers": 0, "image": image}, "pooling": pooling}
    recipe = from_dict(ClassificationRecipe, {"data": {"source": SOURCE}, "model": model})
    task = ClassificationTask.prepare(recipe, EXAMPLES, device=CPU)
    for found in task.attend(EXAMPLES):
        assert found.grid == (2, 2)
        assert float(found.weights.sum()) == pytest.approx(1.0, abs=1e-5)
        assert found.num_text_tokens == 0
        assert len(attention_tiles(found)) == 2


def test_text_of_ten_thousand_words_is_shortened(classifier, caplog):
    text = " ".join(["is it red"] * 3_334)
    ((prediction,),) = classifier.predict([(text, "shapes/0/1")])
    assert prediction.tokens
    warned = [line.getMessage() for line in caplog.records if line.levelname == "WARNING"]
    assert warned == ["shortened 1 of 1 texts to 200 tokens (`max_length`)"]


def test_a_missing_image_is_named(task):
    with pytest.raises(DataError, match="nowhere.png does not exist"):
        task.predict([("is it red", "/nowhere.png")])
