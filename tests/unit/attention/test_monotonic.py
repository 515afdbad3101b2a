import itertools

import pytest
import torch

from regard.attention.monotonic import choose_ahead, expect_ahead

LENGTHS = [6, 3, 1]
NUM_KEYS = 6
MASK = torch.arange(NUM_KEYS) < torch.tensor(LENGTHS)[:, None, None]  # one row a sentence


def first_places(mask, num_queries=4):
    """Where all hypotheses begin."""
    places = torch.zeros(mask.shape[0], num_queries, mask.shape[-1], dtype=torch.float64)
    places[..., 0] = 1.0
    return places


def draw(scale=2.0):
    torch.manual_seed(0)
    return scale * torch.randn(3, 4, NUM_KEYS, dtype=torch.float64)


def walk(align, mask, num_steps=5):
    """The alignments of several steps, each from where the one before ended."""
    places, found = first_places(mask), []
    torch.manual_seed(1)
    for _ in range(num_steps):
        energies = torch.randn(*places.shape, dtype=torch.float64) - 0.5
        places = align(energies, mask, places)
        found.append(places)
    return torch.stack(found, dim=2)  # sentences, queries, steps, positions


def probabilities(energies, length):
    """p of one query: the last real position is always taken, padding never."""
    chances = energies.sigmoid().tolist()[: length - 1]
    return [*chances, 1.0] + [0.0] * (len(energies) - length)


def product_of_rests(chances, start, end):
    rest = 1.0
    for place in range(start, end):
        rest *= 1 - chances[place]
    return rest


@pytest.mark.parametrize("row", range(3))
def test_expectation_is_the_double_sum_of_the_paper(row):
    energies = draw()
    places = walk(expect_ahead, MASK)[:, :, -1]
    found = expect_ahead(energies, MASK, places)
    for query in range(4):
        chances = probabilities(energies[row, query], LENGTHS[row])
        expected = [
            chances[j]
            * sum(places[row, query, k] * product_of_rests(chances, k, j) for k in range(j + 1))
            for j in range(NUM_KEYS)
        ]
        assert found[row, query].tolist() == pytest.approx([float(x) for x in expected], abs=1e-12)


def recursion(energies, places):
    """q_j = (1 - p_{j-1}) q_{j-1} + α_j of the step before, and α_j = p_j q_j: eq. 13-14."""
    chances = probabilities(energies, len(energies))
    reached, found, before = 0.0, [], 0.0
    for chance, place in zip(chances, places.tolist(), strict=True):
        reached = (1 - before) * reached + place
        found.append(chance * reached)
        before = chance
    return found


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)], ids=["64", "32"]
)
@pytest.mark.parametrize("scale", [0.1, 5.0, 100.0])
def test_expectation_is_the_recursion_of_the_paper_in_a_long_source(scale, dtype, tolerance):
    torch.manual_seed(2)
    mask = torch.ones(1, 1, 200, dtype=torch.bool)
    energies = scale * torch.randn(1, 1, 200, dtype=torch.float64) - 3.0
    places = torch.rand(1, 1, 200, dtype=torch.float64)
    places /= places.sum()
    found = expect_ahead(energies.to(dtype), mask, places.to(dtype))
    assert found.dtype == dtype
    assert found[0, 0].tolist() == pytest.approx(recursion(energies[0, 0], places[0, 0]), tolerance)


@pytest.mark.parametrize("scale", [0.1, 5.0, 100.0])
def test_gradients_are_finite_in_a_long_source(scale):
    torch.manual_seed(3)
    mask = torch.ones(1, 1, 200, dtype=torch.bool)
    steps = [(scale * torch.randn(1, 1, 200)).requires_grad_() for _ in range(3)]
    places = first_places(mask, 1).float()
    for energies in steps:
        places = expect_ahead(energies, mask, places)
    (places * torch.arange(200)).sum().backward()
    for energies in steps:
        assert energies.grad.isfinite().all()
        assert energies.grad.abs().sum() > 0


def test_gradients_are_those_of_small_differences():
    mask = MASK[:2, :, :4]
    energies = draw()[:2, :2, :4].requires_grad_()
    places = walk(expect_ahead, mask)[:, :2, -1].requires_grad_()
    assert torch.autograd.gradcheck(
        lambda *given: expect_ahead(given[0], mask, given[1]), (energies, places)
    )


@pytest.mark.parametrize("align", [expect_ahead, choose_ahead])
def test_every_step_spends_all_it_has_and_nothing_on_padding(align):
    weights = walk(align, MASK)
    assert torch.allclose(weights.sum(-1), torch.ones_like(weights[..., 0]))
    is_padding = ~MASK[:, :, None].expand_as(weights)
    assert (weights[is_padding] == 0).all()
    assert (weights >= 0).all()


def test_choice_is_the_first_likely_position_from_the_last_one_on():
    energies = draw()
    last = torch.tensor([[0, 1, 3, 5], [0, 1, 2, 2], [0, 0, 0, 0]])
    places = torch.nn.functional.one_hot(last, NUM_KEYS).double()
    found = choose_ahead(energies, MASK, places)
    for row, length in enumerate(LENGTHS):
        for query in range(4):
            chances = probabilities(energies[row, query], length)
            chosen = next(j for j in range(last[row, query], length) if chances[j] >= 0.5)
            assert found[row, query].tolist() == [float(j == chosen) for j in range(NUM_KEYS)]


def test_choice_never_goes_back_and_comes_ahead():
    choices = walk(choose_ahead, MASK).argmax(-1)
    moves = choices.diff(dim=-1)
    assert (moves >= 0).all()
    assert (moves > 0).any()
    assert (moves == 0).any()


def test_expectation_never_goes_back():
    """The share that has come past a position only grows from step to step."""
    share = walk(expect_ahead, MASK).cumsum(-1)
    assert (share.diff(dim=2) <= 1e-12).all()
    assert (share.diff(dim=2) < -0.01).any()


def test_expectation_is_the_choice_where_nothing_is_left_to_chance():
    sure = draw().sign() * 1e3
    last = torch.tensor([[0, 1, 3, 5], [0, 1, 2, 2], [0, 0, 0, 0]])
    places = torch.nn.functional.one_hot(last, NUM_KEYS).double()
    assert torch.equal(expect_ahead(sure, MASK, places), choose_ahead(sure, MASK, places))


def test_expectation_is_the_mean_over_all_ways_to_read():
    energies = draw()[:1, :1, :4]
    ways = torch.tensor(list(itertools.product([True, False], repeat=4)))[None]
    mask = torch.ones(1, 1, 4, dtype=torch.bool)
    places = torch.tensor([[[0.0, 1.0, 0.0, 0.0]]]).double()
    chances = energies.sigmoid()
    likely = torch.where(ways, chances, 1 - chances).prod(-1, keepdim=True)
    readings = choose_ahead(ways.double() - 0.5, mask, places)
    expected = (likely * readings).sum(1, keepdim=True)
    assert torch.allclose(expect_ahead(energies, mask, places), expected)
