import itertools
import math

import pytest
import torch

from regard.attention.scores import DotScore
from regard.attention.spans import (
    SPANS,
    LocalMonotonicAttention,
    LocalPredictiveAttention,
    MonotonicAttention,
    choose_alignment,
    expect_alignment,
)

LENGTHS = [6, 3, 1]
NUM_KEYS = 6


@pytest.fixture
def inputs():
    """Queries at target positions 0 to 7, longer than any source."""
    torch.manual_seed(0)
    queries = torch.randn(3, 8, 4)
    states = torch.randn(3, NUM_KEYS, 4)
    mask = torch.arange(NUM_KEYS) < torch.tensor(LENGTHS)[:, None]
    positions = torch.arange(8).expand(3, 8)
    return queries, states, mask, positions


def answer(attention, inputs):
    queries, states, mask, positions = inputs
    return attention(queries, attention.prepare(states, mask), positions)[:2]


def share(scores, allowed):
    """Softmax over the allowed keys, by hand."""
    powers = [math.exp(s) if a else 0.0 for s, a in zip(scores, allowed, strict=True)]
    return [power / sum(powers) for power in powers]


def predicted_centre(attention, query, length):
    hidden = torch.tanh(attention.position_map.weight @ query)
    return (length - 1) * torch.sigmoid(attention.position.weight[0] @ hidden).item()


def expected_weights(attention, inputs):
    """The weights of each kind of attention, one loop an axis."""
    queries, states, _, positions = inputs
    rows = []
    for row, length in enumerate(LENGTHS):
        for i in range(queries.shape[1]):
            query = queries[row, i]
            scores = [(query @ states[row, j]).item() for j in range(NUM_KEYS)]
            if isinstance(attention, LocalMonotonicAttention):
                centre = min(positions[row, i].item(), length - 1)
            elif isinstance(attention, LocalPredictiveAttention):
                centre = predicted_centre(attention, query, length)
            else:
                rows.append(share(scores, [j < length for j in range(NUM_KEYS)]))
                continue
            near = [abs(j - centre) <= attention.half_width and j < length for j in range(NUM_KEYS)]
            weights = share(scores, near)
            if isinstance(attention, LocalPredictiveAttention):
                spread = attention.half_width / 2
                weights = [
                    weight * math.exp(-((j - centre) ** 2) / (2 * spread**2))
                    for j, weight in enumerate(weights)
                ]
            rows.append(weights)
    return torch.tensor(rows).view(len(LENGTHS), -1, NUM_KEYS)


def build_attention(name, half_width):
    torch.manual_seed(1)
    return SPANS[name](DotScore(4, 4), half_width=half_width)


CASES = [
    ("global", 0),
    *itertools.product(("local_m", "local_p"), (1, 2, 9)),
]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def attention(request):
    return build_attention(*request.param)


def test_weights_equal_those_by_hand(attention, inputs):
    _, weights = answer(attention, inputs)
    assert torch.allclose(weights, expected_weights(attention, inputs), atol=1e-5)


def test_context_is_the_weighted_sum_of_the_states(attention, inputs):
    context, weights = answer(attention, inputs)
    assert torch.allclose(context, torch.einsum("bqs,bsd->bqd", weights, inputs[1]), atol=1e-6)


def test_padding_weighs_nothing(attention, inputs):
    _, weights = answer(attention, inputs)
    assert (weights.masked_select(~inputs[2][:, None].expand_as(weights)) == 0).all()


def test_every_query_finds_something_however_long_the_target(attention, inputs):
    _, weights = answer(attention, inputs)
    assert (weights.sum(-1) > 0).all()


@pytest.mark.parametrize("name", ["global", "local_m"])
def test_weights_of_an_unshaped_window_sum_to_one(name, inputs):
    _, weights = answer(build_attention(name, 1), inputs)
    assert torch.allclose(weights.sum(-1), torch.ones(3, 8))


def test_walking_window_is_nothing_but_its_neighbours(inputs):
    _, weights = answer(build_attention("local_m", 1), inputs)
    assert (weights[0, 2] > 0).tolist() == [False, True, True, True, False, False]


def test_walking_window_stays_at_the_end_of_the_source(inputs):
    _, weights = answer(build_attention("local_m", 1), inputs)
    assert (weights[1, 7] > 0).tolist() == [False, True, True, False, False, False]


@pytest.mark.parametrize(("ask", "place"), [(100.0, 5), (-100.0, 0)])
def test_asked_for_window_never_leaves_the_sentence(inputs, ask, place):
    attention = build_attention("local_p", 1)
    with torch.no_grad():
        attention.position_map.weight.fill_(1.0)
        attention.position.weight.fill_(ask)
    _, states, mask, positions = inputs
    alike = torch.zeros_like(states)
    _, weights = answer(attention, (torch.ones(3, 8, 4), alike, mask, positions))
    last = torch.tensor(LENGTHS) - 1
    assert (weights.argmax(-1) == last.clamp(max=place)[:, None]).all()


def test_asked_for_place_learns(inputs):
    attention = build_attention("local_p", 2)
    context, _ = answer(attention, inputs)
    context.square().sum().backward()
    assert attention.position.weight.grad.abs().sum() > 0
    assert attention.position_map.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("name", [name for name in SPANS if name != "monotonic"])
def test_state_is_the_number_of_steps(name, inputs):
    attention = build_attention(name, 1)
    steps = attention.start(attention.prepare(*inputs[1:3]), beams=2)
    assert steps.tolist() == [0] * 6
    assert attention.advance(steps, torch.zeros(6, NUM_KEYS)).tolist() == [1] * 6
    assert not attention.follows_weights


class TestMonotonic:
    @pytest.fixture
    def attention(self):
        attention = MonotonicAttention(DotScore(4, 4))
        with torch.no_grad():
            attention.offset.fill_(-0.5)
            attention.gain.fill_(1.5)
        return attention

    @pytest.fixture
    def monotonic_inputs(self, inputs):
        """Queries that stand at one place each, the first of them at the first position."""
        queries, states, mask, positions = inputs
        places = positions.minimum(mask.sum(-1, keepdim=True) - 1)
        return queries, states, mask, torch.nn.functional.one_hot(places, NUM_KEYS).float()

    def test_state_is_the_last_alignment_and_first_the_first_position(self, attention, inputs):
        alignment = attention.start(attention.prepare(*inputs[1:3]), beams=2)
        assert alignment.tolist() == [[1.0, 0.0, 0.0, 0.0, 0.0, 0.0]] * 6
        weights = torch.rand(6, NUM_KEYS)
        assert attention.advance(alignment, weights) is weights
        assert attention.follows_weights

    def test_evaluation_chooses_by_gain_score_and_offset(self, attention, monotonic_inputs):
        queries, states, mask, places = monotonic_inputs
        context, weights = answer(attention.eval(), monotonic_inputs)
        energies = 1.5 * queries @ states.mT - 0.5
        assert torch.equal(weights, choose_alignment(energies, mask[:, None], places))
        assert 0 < (weights * places).sum() < 24  # some stay, some go
        chosen = states.gather(1, weights.argmax(-1)[..., None].expand(-1, -1, 4))
        assert torch.allclose(context, chosen)

    def test_training_expects_with_noise_on_the_energies(self, attention, monotonic_inputs):
        queries, states, mask, places = monotonic_inputs
        torch.manual_seed(7)
        context, weights = answer(attention.train(), monotonic_inputs)
        torch.manual_seed(7)
        energies = 1.5 * queries @ states.mT - 0.5 + attention.noise * torch.randn(3, 8, NUM_KEYS)
        assert torch.allclose(weights, expect_alignment(energies, mask[:, None], places), atol=1e-6)
        assert torch.allclose(context, weights @ states, atol=1e-6)

    @pytest.mark.parametrize("is_training", [True, False])
    def test_noise_is_drawn_in_training_only(self, attention, monotonic_inputs, is_training):
        attention.train(is_training)
        torch.manual_seed(1)
        before = torch.get_rng_state()
        _, first = answer(attention, monotonic_inputs)
        assert torch.equal(torch.get_rng_state(), before) is not is_training
        _, second = answer(attention, monotonic_inputs)
        assert torch.equal(first, second) is not is_training

    def test_gain_and_offset_learn(self, attention, monotonic_inputs):
        context, _ = answer(attention.train(), monotonic_inputs)
        context.square().sum().backward()
        assert attention.gain.grad.abs() > 0
        assert attention.offset.grad.abs() > 0

    def test_half_precision_scores_are_weighed_in_full(self, attention, monotonic_inputs):
        queries, states, mask, places = monotonic_inputs
        half = queries.bfloat16(), states.bfloat16(), mask, places
        for is_training in (True, False):
            context, weights = answer(attention.train(is_training), half)
            assert weights.dtype == torch.float32
            assert context.dtype == torch.bfloat16


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
    places = walk(expect_alignment, MASK)[:, :, -1]
    found = expect_alignment(energies, MASK, places)
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
    found = expect_alignment(energies.to(dtype), mask, places.to(dtype))
    assert found.dtype == dtype
    assert found[0, 0].tolist() == pytest.approx(recursion(energies[0, 0], places[0, 0]), tolerance)


@pytest.mark.parametrize("scale", [0.1, 5.0, 100.0])
def test_gradients_are_finite_in_a_long_source(scale):
    torch.manual_seed(3)
    mask = torch.ones(1, 1, 200, dtype=torch.bool)
    steps = [(scale * torch.randn(1, 1, 200)).requires_grad_() for _ in range(3)]
    places = first_places(mask, 1).float()
    for energies in steps:
        places = expect_alignment(energies, mask, places)
    (places * torch.arange(200)).sum().backward()
    for energies in steps:
        assert energies.grad.isfinite().all()
        assert energies.grad.abs().sum() > 0


def test_gradients_are_those_of_small_differences():
    mask = MASK[:2, :, :4]
    energies = draw()[:2, :2, :4].requires_grad_()
    places = walk(expect_alignment, mask)[:, :2, -1].requires_grad_()
    assert torch.autograd.gradcheck(
        lambda *given: expect_alignment(given[0], mask, given[1]), (energies, places)
    )


@pytest.mark.parametrize("align", [expect_alignment, choose_alignment])
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
    found = choose_alignment(energies, MASK, places)
    for row, length in enumerate(LENGTHS):
        for query in range(4):
            chances = probabilities(energies[row, query], length)
            chosen = next(j for j in range(last[row, query], length) if chances[j] >= 0.5)
            assert found[row, query].tolist() == [float(j == chosen) for j in range(NUM_KEYS)]


def test_choice_never_goes_back_and_comes_ahead():
    choices = walk(choose_alignment, MASK).argmax(-1)
    moves = choices.diff(dim=-1)
    assert (moves >= 0).all()
    assert (moves > 0).any()
    assert (moves == 0).any()


def test_expectation_never_goes_back():
    """The share that has come past a position only grows from step to step."""
    share = walk(expect_alignment, MASK).cumsum(-1)
    assert (share.diff(dim=2) <= 1e-12).all()
    assert (share.diff(dim=2) < -0.01).any()


def test_expectation_is_the_choice_where_nothing_is_left_to_chance():
    sure = draw().sign() * 1e3
    last = torch.tensor([[0, 1, 3, 5], [0, 1, 2, 2], [0, 0, 0, 0]])
    places = torch.nn.functional.one_hot(last, NUM_KEYS).double()
    assert torch.equal(expect_alignment(sure, MASK, places), choose_alignment(sure, MASK, places))


def test_expectation_is_the_mean_over_all_ways_to_read():
    energies = draw()[:1, :1, :4]
    ways = torch.tensor(list(itertools.product([True, False], repeat=4)))[None]
    mask = torch.ones(1, 1, 4, dtype=torch.bool)
    places = torch.tensor([[[0.0, 1.0, 0.0, 0.0]]]).double()
    chances = energies.sigmoid()
    likely = torch.where(ways, chances, 1 - chances).prod(-1, keepdim=True)
    readings = choose_alignment(ways.double() - 0.5, mask, places)
    expected = (likely * readings).sum(1, keepdim=True)
    assert torch.allclose(expect_alignment(energies, mask, places), expected)
