"""Classifiers learn a grammar of opinions, from nothing and from another's encoder."""

import pytest

pytestmark = pytest.mark.learn


@pytest.mark.quick
def test_convolutions_learn_opinions(learn_opinions, value):
    assert value(learn_opinions("sst2-cnn"), "accuracy") >= 95


def test_recurrent_network_learns_opinions(learn_opinions, value):
    assert value(learn_opinions("sst2-lstm"), "accuracy") >= 95


def test_transformer_learns_opinions(learn_opinions, value):
    # The recipe's dropout is meant for real sentences, which a model of this size learns by heart.
    words = ("model.encoder.dropout=0.1", "model.dropout=0.1", "train.patience=0")
    assert value(learn_opinions("sst2-transformer", *words), "accuracy") >= 95


def test_new_head_on_a_trained_encoder_learns_with_the_encoder_frozen(learn_opinions, value):
    first = learn_opinions("sst2-lstm")
    words = (f"init_from={first.folder}", 'train.freeze=["encoder"]', "model.pooling=mean")
    begun = learn_opinions("sst2-lstm", *words, "train.max_epochs=3")
    assert value(begun, "accuracy") >= 95
