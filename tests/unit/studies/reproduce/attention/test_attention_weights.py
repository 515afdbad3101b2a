import pytest
import torch

from regard.attention.attend import masked_softmax
from regard.data.datasets.synthetic.scenes.objects import sample_scene
from regard.studies.reproduce.attention.attention_weights import (
    GRID,
    NUM_PAIRS,
    WEIGHTS,
    attention_weights,
    cell_colours,
    colour_weights,
    identity_weights,
    recall_by_pooling,
    saliency_weights,
)


def test_sharp_kernel_is_the_identity():
    assert torch.allclose(identity_weights(8.0), torch.eye(10), atol=1e-6)
    assert identity_weights(0.5).diagonal().max() < 0.4


def test_weights_of_the_sentence_are_a_softmax_of_their_logarithms():
    assert torch.allclose(masked_softmax(WEIGHTS.log()), WEIGHTS)


def test_contexts_of_the_sentence():
    (_, contexts, *_) = attention_weights(1).tables.values()
    assert [row["context"] for row in contexts.values()] == [
        "(0.90, 0.02)",
        "(-0.77, 0.01)",
        "(0.01, 0.95)",
    ]


def test_only_attention_pooling_recalls_the_value():
    accuracies = recall_by_pooling(2)
    assert accuracies.pop("attention pooling") == 100
    assert all(accuracy < 150 / NUM_PAIRS for accuracy in accuracies.values())


def test_weights_over_an_image_sum_to_one():
    scene = sample_scene(0, 0)
    assert cell_colours(scene).shape == (GRID * GRID, 3)
    for weights in (saliency_weights(scene), colour_weights(scene, "red")):
        assert weights.sum() == pytest.approx(1, abs=1e-5)
