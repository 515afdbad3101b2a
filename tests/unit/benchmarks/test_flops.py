import pytest
import torch
from torch import nn

from benchmarks.flops import count_flops
from regard.attention.multihead import SelfAttention
from regard.attention.positions import POSITIONS


def test_linear_layer_counts_two_per_weight_and_row():
    assert count_flops(nn.Linear(5, 7), [torch.zeros(3, 5)]) == 2 * 3 * 5 * 7


def test_convolution_counts_two_per_weight_and_place():
    layer = nn.Conv2d(3, 4, kernel_size=3, padding=1)
    assert count_flops(layer, [torch.zeros(2, 3, 8, 8)]) == 2 * 2 * 8 * 8 * (3 * 3 * 3 * 4)


@pytest.mark.parametrize(("cell", "gates"), [(nn.RNN, 1), (nn.GRU, 3), (nn.LSTM, 4)])
def test_recurrent_layers_are_counted(cell, gates):
    layer = cell(5, 6, batch_first=True)
    assert count_flops(layer, [torch.zeros(2, 7, 5)]) == 2 * 2 * 7 * gates * 6 * (5 + 6)


def test_fused_attention_is_counted():
    heads = torch.zeros(2, 4, 9, 8)
    attend = nn.functional.scaled_dot_product_attention
    # Scores and contexts, each a product over all pairs of places.
    assert count_flops(attend, [heads, heads, heads]) == 2 * (2 * 2 * 4 * 9 * 9 * 8)


def test_a_step_of_training_counts_the_way_back():
    layer, values = nn.Linear(5, 7), torch.zeros(3, 5, requires_grad=True)
    forward = count_flops(layer, [values])
    assert count_flops(lambda: layer(values).sum().backward(), []) == 3 * forward


def test_recorded_and_fused_attention_count_alike():
    torch.manual_seed(0)
    attention = SelfAttention(
        dim=8, num_heads=2, positions=POSITIONS["none"](dim=8, num_heads=2)
    ).eval()
    states = torch.zeros(1, 6, 8)

    def attend():
        return attention(states)

    fused = count_flops(attend, [])
    attention.needs_weights = True
    assert count_flops(attend, []) == fused > 4 * (2 * 6 * 8 * 8)


def test_fused_kernels_are_back_afterwards_even_after_an_error():
    before = torch.backends.mkldnn.enabled
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        count_flops(nn.Linear(5, 7), [torch.zeros(3, 4)])
    assert torch.backends.mkldnn.enabled == before
