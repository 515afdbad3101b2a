import pytest
import torch

from regard.core.errors import ConfigError
from regard.models.mlp import ACTIVATIONS, MultiLayerPerceptron


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_output_is_the_formula_of_nested_layers(activation):
    torch.manual_seed(0)
    model, inputs = MultiLayerPerceptron(3, (5, 4, 2), activation=activation), torch.randn(7, 3)
    sigma = ACTIVATIONS[activation]
    (w1, b1), (w2, b2), (w3, b3) = ((layer.weight, layer.bias) for layer in model.layers)
    for row, x in enumerate(inputs):
        expected = sigma(w3 @ sigma(w2 @ sigma(w1 @ x + b1) + b2) + b3)
        assert torch.allclose(model(inputs)[row], expected, atol=1e-6)


def test_layers_without_an_activation_are_one_linear_map():
    torch.manual_seed(0)
    model, inputs = MultiLayerPerceptron(3, (5, 4), activation="identity"), torch.randn(2, 3)
    difference = model(inputs[:1] + inputs[1:]) - model(inputs[:1])
    assert torch.allclose(difference, model(inputs[1:]) - model(torch.zeros(1, 3)), atol=1e-6)


def test_dropout_acts_in_training_only():
    torch.manual_seed(0)
    model, inputs = MultiLayerPerceptron(3, (50,), dropout=0.5), torch.ones(1, 3)
    assert not torch.equal(model(inputs), model(inputs))
    model.eval()
    assert torch.equal(model(inputs), model(inputs))


def test_unknown_activation_is_an_error():
    with pytest.raises(ConfigError, match="`activation`.*'relu'"):
        MultiLayerPerceptron(3, (5,), activation="rele")
