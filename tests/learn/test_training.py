"""Models learn with every optimiser, with scheduled sampling and with label smoothing."""

from functools import partial

import pytest

from regard.core.files import read_json_lines
from regard.data.datasets.synthetic.toys import copy, reverse
from regard.runs import folder as runs

pytestmark = pytest.mark.learn


def losses(trained):
    """Return the loss of each validation."""
    rows = read_json_lines(trained.folder / runs.TRAINING_LOG)
    return [row["loss"] for row in rows if row["kind"] == "valid"]


@pytest.mark.quick
def test_scheduled_sampling_still_learns(learn, value):
    trained = learn(partial(reverse, limits=(3, 8)), "train.teacher_forcing=0.5")
    assert value(trained, "accuracy") >= 90


def test_label_smoothing_still_learns(learn, value):
    trained = learn(partial(reverse, limits=(3, 8)), "train.label_smoothing=0.1")
    assert value(trained, "accuracy") >= 90


@pytest.mark.parametrize(
    "overrides",
    [
        pytest.param(("kind=sgd", "learning_rate=0.5", "momentum=0.9"), id="sgd"),
        pytest.param(("kind=adagrad", "learning_rate=0.05"), id="adagrad"),
        pytest.param(("kind=rmsprop", "learning_rate=0.003"), id="rmsprop"),
        pytest.param(("kind=adam", "learning_rate=0.006"), id="adam"),
        pytest.param(("kind=adamw", "learning_rate=0.006"), id="adamw"),
        pytest.param(("kind=muon", "learning_rate=0.006"), id="muon"),
    ],
)
def test_optimizer_reduces_the_loss(learn, overrides):
    optimizer = [f"train.optimizer.{override}" for override in overrides]
    trained = learn(partial(copy, limits=(3, 6)), *optimizer, "train.validate_every=10")
    first, *_, last = losses(trained)
    assert last < first / 3
