import pytest
import torch
from torch import nn

from regard.attention.attend import masked_softmax
from regard.attention.multihead import SelfAttention
from regard.attention.positions import POSITIONS
from regard.attention.recording import record
from regard.attention.scores import DotScore
from regard.attention.spans import GlobalAttention


class TwoLayers(nn.Module):
    """Attends twice a step, one step after the other, as a recurrent decoder does."""

    def __init__(self):
        super().__init__()
        self.lower = GlobalAttention(DotScore(4, 4))
        self.upper = GlobalAttention(DotScore(4, 4))

    def forward(self, queries, states, mask):
        positions = torch.zeros(queries.shape[0], 1)
        for query in queries.split(1, dim=1):
            context = self.lower(query, self.lower.prepare(states, mask), positions).context
            self.upper(context, self.upper.prepare(states, mask), positions)


@pytest.fixture
def inputs():
    torch.manual_seed(0)
    mask = torch.tensor([[True] * 5, [True, True, False, False, False]])
    return torch.randn(2, 3, 4), torch.randn(2, 5, 4), mask


def hooks(model):
    return sum(len(module._forward_hooks) for module in model.modules())


def test_maps_have_layers_heads_and_concatenated_steps(inputs):
    model = TwoLayers()
    with record(model) as maps:
        model(*inputs)
    assert maps.num_layers == 2
    assert maps.stack().shape == (2, 2, 1, 3, 5)  # (B, N, H, T, S)


def test_maps_are_the_weights(inputs):
    model = TwoLayers()
    with record(model) as maps:
        model(*inputs)
    queries, states, mask = inputs
    lower = masked_softmax(queries @ states.transpose(1, 2), mask[:, None])
    upper = masked_softmax(lower @ states @ states.transpose(1, 2), mask[:, None])
    assert torch.allclose(maps.stack()[:, :, 0], torch.stack([lower, upper], 1), atol=1e-6)


def test_maps_are_detached(inputs):
    queries, states, mask = inputs
    model = TwoLayers()
    with record(model) as maps:
        model(queries.requires_grad_(), states, mask)
    assert not maps.stack().requires_grad


def test_heads_of_a_call_are_separate(inputs):
    with record(TwoLayers()) as maps:
        for layer in range(2):
            maps.add(layer, torch.rand(2, 7, 3, 5))
    assert maps.stack().shape == (2, 2, 7, 3, 5)


def test_layers_with_fewer_heads_repeat_them():
    few, many = torch.rand(2, 2, 3, 5), torch.rand(2, 3, 3, 5)
    with record(TwoLayers()) as maps:
        maps.add(0, few)
        maps.add(1, many)
    stacked = maps.stack()
    assert stacked.shape == (2, 2, 6, 3, 5)  # (B, N, H, T, S)
    assert torch.equal(stacked[:, 0, ::3], few)
    assert torch.equal(stacked[:, 1, ::2], many)
    assert torch.allclose(stacked.mean(2), torch.stack([few.mean(1), many.mean(1)], 1), atol=1e-6)


def test_nothing_is_recorded_after_the_block(inputs):
    model = TwoLayers()
    with record(model) as maps:
        model(*inputs)
    assert hooks(model) == 0
    model(*inputs)
    assert maps.stack().shape[3] == 3


def test_hooks_are_removed_after_an_error():
    model = TwoLayers()
    with pytest.raises(RuntimeError, match="stop"), record(model):
        raise RuntimeError("stop")
    assert hooks(model) == 0


def test_nested_recordings_both_record_everything(inputs):
    model = TwoLayers()
    with record(model) as outer:
        with record(model) as inner:
            model(*inputs)
        model(*inputs)
    assert inner.stack().shape[3] == 3
    assert outer.stack().shape[3] == 6


def test_recording_changes_no_module(inputs):
    model = TwoLayers()
    before = {name: set(vars(module)) for name, module in model.named_modules()}
    with record(model):
        model(*inputs)
    assert {name: set(vars(module)) for name, module in model.named_modules()} == before


def test_recording_without_attention_is_an_error():
    with record(TwoLayers()) as maps:
        pass
    with pytest.raises(
        ValueError, match=r"^Nothing was recorded: no attention ran inside the block\.$"
    ):
        maps.stack()


def test_shared_attention_has_a_map_for_each_layer():
    torch.manual_seed(0)
    attention = SelfAttention(dim=4, num_heads=2, positions=POSITIONS["none"](dim=4, num_heads=2))
    texts = [torch.randn(2, 3, 4) for _ in range(3)]
    with record(attention, is_self=True) as maps:
        alone = [attention(text)[1] for text in texts]
    assert maps.num_layers == 1
    assert torch.equal(maps.stack_self(), torch.stack(alone, dim=1))  # (B, N, H, S, S)
