import pytest
import torch

from regard.models.interfaces import Memory

MEMORY_DIM = 4


@pytest.fixture
def memory():
    """Three sentences of 5, 2 and 4 positions, from an encoder with two LSTM layers."""
    torch.manual_seed(7)
    return Memory(
        states=torch.randn(3, 5, MEMORY_DIM),
        mask=torch.arange(5) < torch.tensor([5, 2, 4])[:, None],
        summary=torch.randn(3, MEMORY_DIM),
        final=tuple((torch.randn(3, MEMORY_DIM), torch.randn(3, MEMORY_DIM)) for _ in range(2)),
    )


@pytest.fixture
def gru_by_hand():
    """One step of one GRU cell for one row, from the formulas."""

    def step(cell, inputs, hidden):
        reset_in, update_in, new_in = (cell.weight_ih_l0 @ inputs + cell.bias_ih_l0).chunk(3)
        reset_on, update_on, new_on = (cell.weight_hh_l0 @ hidden + cell.bias_hh_l0).chunk(3)
        reset = torch.sigmoid(reset_in + reset_on)
        update = torch.sigmoid(update_in + update_on)
        new = torch.tanh(new_in + reset * new_on)
        return (1 - update) * new + update * hidden

    return step


@pytest.fixture
def maxout_by_hand():
    """The larger of each two neighbours of a dense layer over state, word and context."""

    def read(readout, state, word, context):
        joined = readout.joint_map(torch.cat([state, word, context]))
        return torch.stack([joined[i : i + 2].max() for i in range(0, len(joined), 2)])

    return read
