import math

import pytest
import torch

from regard.models.decoders.xu2015 import Advantage

LOG_PROBS = torch.tensor([[-1.0, -3.0, -2.0], [-4.0, -0.5, -9.0]])
LABELS = torch.tensor([[3, 4, 3], [4, 5, 0]])
MASK = torch.tensor([[True, True, True], [True, True, False]])


@pytest.fixture
def advantage():
    advantage = Advantage(6)
    advantage.usual.copy_(torch.tensor([-7.0, -7.0, -7.0, -1.5, -2.0, -1.0]))
    return advantage


def test_only_later_tokens_count(advantage):
    # -1 + 1.5, -3 + 2 and -2 + 1.5; -4 + 2 and -0.5 + 1, each with all that follows.
    expected = torch.tensor([[-1.0, -1.5, -0.5], [-1.5, 0.5, 0.0]])
    assert torch.allclose(advantage(LOG_PROBS, LABELS, MASK), expected)


@pytest.mark.parametrize(("variance", "divisor"), [(0.25, 1.0), (1.0, 1.0), (16.0, 4.0)])
def test_advantage_is_divided_by_a_standard_deviation_above_one(advantage, variance, divisor):
    advantage.variance.fill_(variance)
    first = advantage(LOG_PROBS, LABELS, MASK)[0]
    assert torch.allclose(first, torch.tensor([-1.0, -1.5, -0.5]) / divisor)


def test_baseline_moves_for_the_tokens_in_the_batch(advantage):
    advantage(LOG_PROBS, LABELS, MASK)
    expected = [-7.0, -7.0, -7.0, 0.9 * -1.5 + 0.1 * -1.5, 0.9 * -2.0 + 0.1 * -3.5, -0.95]
    assert advantage.usual.tolist() == pytest.approx(expected)


def test_variance_moves_towards_that_of_the_batch(advantage):
    squares = [1.0, 2.25, 0.25, 2.25, 0.25]
    advantage(LOG_PROBS, LABELS, MASK)
    assert advantage.variance.item() == pytest.approx(0.9 + 0.1 * sum(squares) / 5)


def test_without_samples_nothing_changes(advantage):
    before = {name: value.clone() for name, value in advantage.state_dict().items()}
    assert not advantage(LOG_PROBS, LABELS, torch.zeros_like(MASK)).any()
    assert all(torch.equal(value, before[name]) for name, value in advantage.state_dict().items())


def test_initial_baseline_is_uniform():
    log_probs = torch.full((2, 3), -math.log(6))
    assert torch.allclose(Advantage(6)(log_probs, LABELS, MASK), torch.zeros(2, 3), atol=1e-6)


def test_baseline_per_token_reduces_the_variance():
    # The log-probability depends on the token only, so the baseline predicts it exactly.
    torch.manual_seed(0)
    token_log_probs, advantage = -5 * torch.rand(6), Advantage(6)
    for _ in range(200):
        labels = torch.randint(6, (8, 3))
        found = advantage(token_log_probs[labels], labels, torch.ones(8, 3).bool())
    assert found.abs().max() < 1e-3
