import pytest

from regard.data.example import Example
from regard.studies.reproduce.transformers.architectures import (
    MODELS,
    Course,
    describe_block,
    shift_right,
    train_model,
)
from regard.studies.reproduce.transformers.training import SMALL_TRANSFORMER

PAIRS = [
    Example("the cat sleeps .", "die Katze schläft ."),
    Example("a dog runs .", "ein Hund rennt ."),
]


def test_decoder_input_is_the_target_shifted_right():
    rows = [*shift_right().values()]
    assert [row["input"] for row in rows[1:4]] == ["schools", "opened", "their"]
    assert [row["label"] for row in rows[:4]] == ["schools", "opened", "their", "doors"]


@pytest.mark.parametrize("name", MODELS)
def test_every_model_trains(name):
    recipe, _ = MODELS[name]
    course = train_model(recipe, 8, train=PAIRS, test=PAIRS, seed=1)
    assert len(course.curve) == 8


def test_blocks_keep_their_width():
    task = train_model(SMALL_TRANSFORMER, 8, train=PAIRS, test=PAIRS, seed=1).training.task
    block = describe_block(task)
    assert block["cross-attention"] == {"in": 64, "out": 64}
    assert block["feed-forward, up"] == {"in": 64, "out": 256}


@pytest.mark.parametrize(("seconds", "loss"), [(0.5, 4.0), (1, 4.0), (2, 3.0), (3, 2.0), (9, 2.0)])
def test_loss_is_interpolated_by_time(seconds, loss):
    course = Course(training=None, curve=[(1.0, 4.0), (3.0, 2.0)])
    assert course.loss_at(seconds) == pytest.approx(loss)
