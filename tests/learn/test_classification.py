"""Text classifiers learn generated opinions, from scratch and from a trained encoder."""

import pytest

pytestmark = pytest.mark.learn


@pytest.mark.quick
def test_convolutions_learn_opinions(learn_opinions, value):
    assert value(learn_opinions("sst2-cnn"), "accuracy") >= 95


def test_recurrent_network_learns_opinions(learn_opinions, value):
    assert value(learn_opinions("sst2-lstm"), "accuracy") >= 95


def test_transformer_learns_opinions(learn_opinions, value):
    # The dropout of the recipe is for real sentences, on which a model of this size overfits.
    overrides = ("model.encoder.dropout=0.1", "model.dropout=0.1", "train.patience=0")
    assert value(learn_opinions("sst2-transformer", *overrides), "accuracy") >= 95


def test_new_head_learns_on_a_frozen_encoder(learn_opinions, value):
    first = learn_opinions("sst2-lstm")
    overrides = (f"init_from={first.folder}", 'train.freeze=["encoder"]', "model.pooling=mean")
    fine_tuned = learn_opinions("sst2-lstm", *overrides, "train.max_epochs=3")
    assert value(fine_tuned, "accuracy") >= 95
