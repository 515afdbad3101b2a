import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.models.interfaces import map_tensors
from regard.models.recurrent import (
    BidirectionalLSTM,
    Recurrence,
    RecurrentConfig,
    num_tensors,
    run_padded,
)

CELLS = {"vanilla": nn.RNNCell, "gru": nn.GRUCell, "lstm": nn.LSTMCell}
TORCH = {"vanilla": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


@pytest.fixture(params=CELLS)
def cell(request):
    return request.param


@pytest.fixture(params=[1, 3], ids=lambda layers: f"{layers}-layers")
def num_layers(request):
    return request.param


@pytest.fixture
def recurrence(cell, num_layers):
    torch.manual_seed(0)
    return Recurrence(RecurrentConfig(cell=cell, dim=5, num_layers=num_layers, dropout=0.0), 4)


@pytest.fixture
def inputs():
    torch.manual_seed(1)
    return torch.randn(2, 6, 4)


@pytest.fixture
def states(cell, num_layers):
    torch.manual_seed(2)
    return tuple(
        tuple(torch.randn(2, 5) for _ in range(num_tensors(cell))) for _ in range(num_layers)
    )


def flat(states):
    return torch.stack([tensor for layer in states for tensor in layer])


def take_steps(recurrence, inputs, states):
    outputs = []
    for position in range(inputs.shape[1]):
        output, states = recurrence.step(inputs[:, position], states)
        outputs.append(output)
    return torch.stack(outputs, dim=1), states


def test_sequence_equals_torch(cell, num_layers, recurrence, inputs, states):
    reference = TORCH[cell](4, 5, num_layers, batch_first=True)
    reference.load_state_dict(recurrence.sequence.state_dict())
    hidden = torch.stack([layer[0] for layer in states])
    first = (hidden, torch.stack([layer[1] for layer in states])) if cell == "lstm" else hidden
    expected, last = reference(inputs, first)
    outputs, ends = recurrence(inputs, states)
    assert torch.equal(outputs, expected)
    last = torch.stack(last, dim=1).flatten(0, 1) if cell == "lstm" else last
    assert torch.equal(flat(ends), last)


def test_step_equals_torch_cells(cell, num_layers, recurrence, inputs, states):
    hidden = inputs[:, 0]
    expected = []
    for layer in range(num_layers):
        reference = CELLS[cell](hidden.shape[-1], 5)
        reference.load_state_dict(
            {
                name: getattr(recurrence.sequence, f"{name}_l{layer}")
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            }
        )
        given = states[layer] if cell == "lstm" else states[layer][0]
        result = reference(hidden, given)
        expected.append(result if cell == "lstm" else (result,))
        hidden = expected[-1][0]
    output, next_states = recurrence.step(inputs[:, 0], states)
    assert torch.allclose(output, hidden, atol=1e-6)
    assert torch.allclose(flat(next_states), flat(expected), atol=1e-6)


def test_steps_equal_the_sequence(recurrence, inputs, states):
    outputs, ends = recurrence(inputs, states)
    step_outputs, step_ends = take_steps(recurrence, inputs, states)
    assert torch.allclose(step_outputs, outputs, atol=1e-6)
    assert torch.allclose(flat(step_ends), flat(ends), atol=1e-6)


def test_gradients_of_steps_and_sequence_are_equal(recurrence, inputs, states):
    gradients = []
    for run in (recurrence, lambda *given: take_steps(recurrence, *given)):
        recurrence.zero_grad()
        run(inputs, states)[0].square().sum().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in recurrence.parameters()]))
    assert torch.allclose(*gradients, atol=1e-4)


def test_states_of_another_dtype_are_accepted(recurrence, inputs, states):
    rough = map_tensors(states, lambda tensor: tensor.bfloat16())
    exact = map_tensors(rough, lambda tensor: tensor.float())
    assert torch.equal(recurrence(inputs, rough)[0], recurrence(inputs, exact)[0])


def test_lstm_has_two_state_tensors_and_the_others_one():
    assert [num_tensors(cell) for cell in ("vanilla", "gru", "lstm")] == [1, 1, 2]


def test_dropout_is_between_the_layers_only():
    torch.manual_seed(0)
    recurrence = Recurrence(RecurrentConfig(cell="gru", dim=5, num_layers=2, dropout=0.9), 4)
    inputs, states = torch.randn(2, 4), ((torch.zeros(2, 5),),) * 2
    _, first = recurrence.step(inputs, states)
    _, second = recurrence.step(inputs, states)
    assert torch.equal(first[0][0], second[0][0])
    assert not torch.equal(first[1][0], second[1][0])


def test_single_layer_has_no_dropout():
    recurrence = Recurrence(RecurrentConfig(cell="gru", dim=5, num_layers=1, dropout=0.9), 4)
    inputs, states = torch.randn(2, 3, 4), ((torch.zeros(2, 5),),)
    assert torch.equal(recurrence(inputs, states)[0], recurrence(inputs, states)[0])


def unroll(recurrence, inputs, states, *, num_known):
    """Run step by step, with the first `num_known` features of the inputs known in advance."""
    steps = recurrence.unroll(inputs[..., :num_known])
    outputs = []
    for position, rest in enumerate(inputs[..., num_known:].unbind(1)):
        output, states = steps.step(position, rest, states)
        outputs.append(output)
    return torch.stack(outputs, dim=1), states


def all_gradients(recurrence, outputs, ends, *tensors):
    loss = outputs.square().sum() + flat(ends).square().sum()
    return torch.autograd.grad(loss, [*recurrence.parameters(), *tensors], retain_graph=True)


@pytest.mark.parametrize("num_known", [1, 3])
def test_unrolled_steps_equal_the_sequence(recurrence, inputs, states, num_known):
    recurrence, inputs = recurrence.double(), inputs.double().requires_grad_()
    states = map_tensors(states, lambda tensor: tensor.double().requires_grad_())
    first = [tensor for layer in states for tensor in layer]
    outputs, ends = recurrence(inputs, states)
    step_outputs, step_ends = unroll(recurrence, inputs, states, num_known=num_known)
    assert torch.allclose(step_outputs, outputs)
    assert torch.allclose(flat(step_ends), flat(ends))
    expected = all_gradients(recurrence, outputs, ends, inputs, *first)
    # The second backward pass over the same graph gives the same gradients.
    for _ in range(2):
        found = all_gradients(recurrence, step_outputs, step_ends, inputs, *first)
        for ours, theirs in zip(found, expected, strict=True):
            assert torch.allclose(ours, theirs)


def test_gradients_of_some_unrolled_steps_equal_the_sequence(recurrence, inputs, states):
    """Later steps, which the loss does not depend on, do not change the gradients."""
    recurrence, inputs = recurrence.double(), inputs.double()
    states = map_tensors(states, lambda tensor: tensor.double())
    gradients = [
        torch.autograd.grad(outputs[:, :3].square().sum(), list(recurrence.parameters()))
        for outputs in (
            recurrence(inputs, states)[0],
            unroll(recurrence, inputs, states, num_known=1)[0],
        )
    ]
    for ours, theirs in zip(*gradients, strict=True):
        assert torch.allclose(ours, theirs)


def run_packed(recurrence, inputs, lengths):
    packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
    outputs, last = recurrence(packed)
    states, _ = pad_packed_sequence(outputs, batch_first=True, total_length=inputs.shape[1])
    return states, last if isinstance(last, tuple) else (last,)


@pytest.mark.parametrize("is_bidirectional", [False, True], ids=["forward", "both"])
@pytest.mark.parametrize("lengths", [[4, 6, 1], [6, 6, 6], [2, 3, 3]], ids=str)
def test_padded_sequences_equal_packed_ones(cell, num_layers, is_bidirectional, lengths):
    torch.manual_seed(0)
    layers = TORCH[cell](3, 4, num_layers, batch_first=True, bidirectional=is_bidirectional)
    inputs, lengths = torch.randn(3, 6, 3, requires_grad=True), torch.tensor(lengths)
    results = [
        run_packed(layers, inputs, lengths),
        run_padded(layers, inputs, torch.arange(6) < lengths[:, None]),
    ]
    for states, final in results:
        assert states.shape == (3, 6, 4 * (1 + is_bidirectional))
        assert len(final) == num_tensors(cell)
    gradients = []
    for states, final in results:
        torch.manual_seed(1)  # the same random loss for both
        loss = sum((part * torch.randn_like(part)).sum() for part in (states, *final))
        gradients.append(torch.autograd.grad(loss, [inputs, *layers.parameters()]))
    (packed, packed_final), (padded, padded_final) = results
    for ours, theirs in zip(
        (padded, *padded_final, *gradients[1]), (packed, *packed_final, *gradients[0]), strict=True
    ):
        assert torch.allclose(ours, theirs, atol=1e-6)


def test_padding_of_any_value_leaves_states_unchanged(cell):
    torch.manual_seed(0)
    layers = TORCH[cell](3, 4, 2, batch_first=True, bidirectional=True)
    inputs, mask = torch.randn(2, 6, 3), torch.arange(6) < torch.tensor([[4], [2]])
    changed = inputs.masked_fill(~mask[..., None], 1e3)
    states, final = run_padded(layers, inputs, mask)
    other_states, other_final = run_padded(layers, changed, mask)
    assert torch.equal(states, other_states)
    for part, other in zip(final, other_final, strict=True):
        assert torch.equal(part, other)


def test_dropout_between_padded_layers_depends_on_the_mode(cell):
    torch.manual_seed(0)
    layers = TORCH[cell](3, 4, 2, batch_first=True, dropout=0.9)
    inputs, mask = torch.randn(2, 6, 3), torch.ones(2, 6, dtype=torch.bool)
    first, second = (run_padded(layers, inputs, mask)[1][0] for _ in range(2))
    assert torch.equal(first[0], second[0])
    assert not torch.equal(first[1], second[1])
    layers.eval()
    assert torch.allclose(run_padded(layers, inputs, mask)[0], layers(inputs)[0], atol=1e-6)


def test_bidirectional_lstm_equals_packed_torch_lstm():
    torch.manual_seed(0)
    both, packed = BidirectionalLSTM(3, 4), nn.LSTM(3, 4, batch_first=True, bidirectional=True)
    for name, weight in packed.named_parameters():
        side = both.backwards if name.endswith("_reverse") else both.forwards
        weight.data.copy_(getattr(side, name.removesuffix("_reverse")))
    inputs, lengths = torch.randn(3, 6, 3), torch.tensor([4, 6, 1])
    states, last = both(inputs, torch.arange(6) < lengths[:, None])
    expected, (hidden, _) = run_packed(packed, inputs, lengths)
    assert torch.allclose(states, expected, atol=1e-6)
    assert torch.allclose(last, torch.cat([hidden[0], hidden[1]], dim=-1), atol=1e-6)
