import torch

from regard.studies.reproduce.neurons.neuron import (
    INPUTS,
    TARGETS,
    HiddenLayer,
    Neuron,
    best_line,
    count_right,
)


def test_output_is_the_sigmoid_of_the_weighted_sum():
    neuron = Neuron(torch.Generator().manual_seed(0))
    with torch.no_grad():
        neuron.w.copy_(torch.tensor([2.0, -1.0]))
        neuron.b.fill_(0.5)
        outputs = neuron(INPUTS)
    expected = 1 / (1 + (-torch.tensor([0.5, -0.5, 2.5, 1.5])).exp())
    assert torch.allclose(outputs, expected)


def test_weights_set_by_hand_compute_and():
    neuron = Neuron(torch.Generator().manual_seed(0))
    with torch.no_grad():
        neuron.w.fill_(1.0)
        neuron.b.fill_(-1.5)
    assert {name: count_right(neuron, targets) for name, targets in TARGETS.items()} == {
        "AND": 4,
        "OR": 2,
        "XOR": 1,
    }


def test_hidden_layer_set_by_hand_computes_xor():
    model = HiddenLayer("relu", seed=0)
    (hidden,), (output,) = model.hidden.layers, model.output.layers
    with torch.no_grad():
        # relu(x₁ + x₂) - 2 relu(x₁ + x₂ - 1); two neurons are not used.
        hidden.weight.copy_(torch.ones(4, 2))
        hidden.bias.copy_(torch.tensor([0.0, -1.0, 0.0, 0.0]))
        output.weight.copy_(torch.tensor([[1.0, -2.0, 0.0, 0.0]]))
        output.bias.fill_(-0.5)
    assert count_right(model, TARGETS["XOR"]) == 4


def test_a_line_separates_and_and_or_but_not_xor():
    assert [best_line(targets, seed=1) for targets in TARGETS.values()] == [4, 4, 3]
