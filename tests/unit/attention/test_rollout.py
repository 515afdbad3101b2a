import pytest
import torch

from regard.attention.multihead import SelfAttention
from regard.attention.positions import POSITIONS
from regard.attention.recording import record
from regard.attention.rollout import class_token_weights, last_layer, rollout


@pytest.fixture
def maps():
    """Random rows that sum to one, (B, N, H, S, S)."""
    torch.manual_seed(0)
    values = torch.rand(2, 3, 4, 5, 5, dtype=torch.float64)
    return values / values.sum(-1, keepdim=True)


def test_two_layers_by_hand():
    lower = [[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]]
    upper = [[[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]]
    found = rollout(torch.tensor([[lower, upper]]))
    # Means of heads: ((.5, .5), (.5, .5)) and ((0, 1), (.5, .5)). Half of each row is itself:
    # ((.75, .25), (.25, .75)) and ((.5, .5), (.25, .75)). Their product, upper times lower:
    assert found.tolist() == [[[0.5, 0.5], [0.375, 0.625]]]


def test_every_row_sums_to_one(maps):
    assert torch.allclose(rollout(maps).sum(-1), torch.ones(2, 5, dtype=torch.float64))


def test_rollout_is_the_sum_over_all_paths(maps):
    layers = (0.5 * maps.mean(2) + 0.5 * torch.eye(5))[0]  # (N, S, S)
    total = torch.zeros(5, 5, dtype=torch.float64)
    for end, middle, low, start in torch.cartesian_prod(*[torch.arange(5)] * 4).tolist():
        path = layers[2, end, middle] * layers[1, middle, low] * layers[0, low, start]
        total[end, start] += path
    assert torch.allclose(rollout(maps)[0], total)


def test_identity_layers_do_not_change_the_rollout(maps):
    identity = torch.eye(5, dtype=torch.float64).expand(2, 1, 4, 5, 5)
    padded = torch.cat([identity, maps, identity], dim=1)
    assert torch.allclose(rollout(padded), rollout(maps))


def test_without_residual_one_layer_is_the_mean_of_its_heads(maps):
    assert torch.allclose(rollout(maps[:, :1], residual=0.0), maps[:, 0].mean(1))


def test_fully_masked_positions_keep_their_own_weight(maps):
    maps[:, :, :, 4] = 0.0
    assert rollout(maps)[:, 4].tolist() == [[0.0, 0.0, 0.0, 0.0, 1.0]] * 2


def test_last_layer_is_the_mean_of_its_heads(maps):
    assert torch.equal(last_layer(maps), sum(maps[:, 2, head] for head in range(4)) / 4)


def test_class_token_weights_are_normalised_without_itself():
    joint = torch.tensor([[[0.5, 0.1, 0.4], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]])
    assert class_token_weights(joint).tolist() == [[pytest.approx(0.2), pytest.approx(0.8)]]


def test_class_token_that_attends_to_itself_only_has_zero_weights():
    assert class_token_weights(torch.eye(3)[None]).tolist() == [[0.0, 0.0]]


def test_rollout_accepts_recorded_maps():
    torch.manual_seed(0)
    attention = SelfAttention(dim=4, num_heads=2, positions=POSITIONS["none"](dim=4, num_heads=2))
    with record(attention, is_self=True) as maps:
        states = torch.randn(1, 3, 4)
        attention(states)
    assert rollout(maps.stack_self()).shape == (1, 3, 3)  # (B, S, S)


def test_wrong_number_of_axes_is_an_error():
    with pytest.raises(ValueError, match="`maps` must have the axes"):
        rollout(torch.zeros(2, 5, 5))
