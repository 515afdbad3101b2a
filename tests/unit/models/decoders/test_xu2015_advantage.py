import math

import pytest
import torch

from regard.models.decoders.xu2015 import Advantage

TOLD = torch.tensor([[-1.0, -3.0, -2.0], [-4.0, -0.5, -9.0]])
LABELS = torch.tensor([[3, 4, 3], [4, 5, 0]])
MASK = torch.tensor([[True, True, True], [True, True, False]])


@pytest.fixture
def advantage():
    found = Advantage(6)
    found.usual.copy_(torch.tensor([-7.0, -7.0, -7.0, -1.5, -2.0, -1.0]))
    return found


def test_only_what_is_said_from_a_choice_on_counts(advantage):
    # -1 + 1.5, -3 + 2 and -2 + 1.5; -4 + 2 and -0.5 + 1, each with all that follows.
    expected = torch.tensor([[-1.0, -1.5, -0.5], [-1.5, 0.5, 0.0]])
    assert torch.allclose(advantage(TOLD, LABELS, MASK), expected)


@pytest.mark.parametrize(("variance", "divisor"), [(0.25, 1.0), (1.0, 1.0), (16.0, 4.0)])
def test_is_divided_by_its_deviation_where_that_is_above_one(advantage, variance, divisor):
    advantage.variance.fill_(variance)
    first = advantage(TOLD, LABELS, MASK)[0]
    assert torch.allclose(first, torch.tensor([-1.0, -1.5, -0.5]) / divisor)


def test_usual_moves_for_the_words_that_were_said(advantage):
    advantage(TOLD, LABELS, MASK)
    expected = [-7.0, -7.0, -7.0, 0.9 * -1.5 + 0.1 * -1.5, 0.9 * -2.0 + 0.1 * -3.5, -0.95]
    assert advantage.usual.tolist() == pytest.approx(expected)


def test_variance_moves_towards_that_of_the_batch(advantage):
    squares = [1.0, 2.25, 0.25, 2.25, 0.25]
    advantage(TOLD, LABELS, MASK)
    assert advantage.variance.item() == pytest.approx(0.9 + 0.1 * sum(squares) / 5)


def test_where_nothing_was_chosen_nothing_is_learned(advantage):
    before = {name: value.clone() for name, value in advantage.state_dict().items()}
    assert not advantage(TOLD, LABELS, torch.zeros_like(MASK)).any()
    assert all(torch.equal(value, before[name]) for name, value in advantage.state_dict().items())


def test_at_first_all_words_are_held_for_equally_likely():
    told = torch.full((2, 3), -math.log(6))
    assert torch.allclose(Advantage(6)(told, LABELS, MASK), torch.zeros(2, 3), atol=1e-6)


def test_hard_words_take_less_of_the_noise_once_they_are_known():
    # Each word has a log-probability of its own: nothing is left that a choice could explain.
    torch.manual_seed(0)
    hardness, advantage = -5 * torch.rand(6), Advantage(6)
    for _ in range(200):
        labels = torch.randint(6, (8, 3))
        found = advantage(hardness[labels], labels, torch.ones(8, 3).bool())
    assert found.abs().max() < 1e-3
