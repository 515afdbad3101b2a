"""Every decoder learns what it can, in each of its ways to look."""

from functools import partial

import pytest

from regard.data.synthetic import copy

pytestmark = pytest.mark.learn
SHORT = partial(copy, max_length=4)
LONGER = partial(copy, max_length=8)
GRU_BOTH_WAYS = (
    "model.encoder.cell=gru",
    "model.encoder.is_bidirectional=true",
    "model.decoder.cell=gru",
)
WIDE = (
    "model.encoder.dim=96",
    "model.decoder.dim=96",
    "train.optimizer.learning_rate=0.01",
    "train.max_steps=600",
)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("model.decoder.score=dot",), id="dot"),
        pytest.param(("model.decoder.score=general",), id="general", marks=pytest.mark.quick),
        pytest.param(("model.decoder.score=concat", "model.decoder.attention_dim=48"), id="concat"),
        pytest.param(
            ("model.decoder.score=location", "model.decoder.max_source=16"), id="location"
        ),
        pytest.param(("model.decoder.reach=local_m", "model.decoder.window=2"), id="local_m"),
        pytest.param(("model.decoder.reach=local_p", "model.decoder.window=2"), id="local_p"),
        pytest.param(("model.decoder.reach=monotonic",), id="monotonic"),
        pytest.param(("model.decoder.is_input_fed=false",), id="not-fed"),
    ],
)
def test_luong_learns_to_copy(learn, value, words):
    trained = learn(LONGER, *GRU_BOTH_WAYS, *words, recipe="luong2015-laptop")
    assert value(trained, "accuracy") >= 90


@pytest.mark.quick
def test_cho_learns_to_copy_what_is_short(learn, value):
    assert value(learn(SHORT, *WIDE, recipe="cho2014-laptop"), "accuracy") >= 85


def test_sutskever_learns_to_copy_what_is_short(learn, value):
    assert value(learn(SHORT, *WIDE, recipe="sutskever2014-laptop"), "accuracy") >= 80
