import itertools
import math

import pytest
import torch

from regard.attention.monotonic import choose_ahead, expect_ahead
from regard.attention.scores import DotScore
from regard.attention.spans import (
    SPANS,
    LocalMonotonicAttention,
    LocalPredictiveAttention,
    MonotonicAttention,
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
    return attention(queries, attention.prepare(states, mask), positions)


def share(scores, allowed):
    """Softmax over the allowed keys, by hand."""
    powers = [math.exp(s) if a else 0.0 for s, a in zip(scores, allowed, strict=True)]
    return [power / sum(powers) for power in powers]


def predicted_centre(attention, query, length):
    hidden = torch.tanh(attention.place_map.weight @ query)
    return (length - 1) * torch.sigmoid(attention.place.weight[0] @ hidden).item()


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
        attention.place_map.weight.fill_(1.0)
        attention.place.weight.fill_(ask)
    _, states, mask, positions = inputs
    alike = torch.zeros_like(states)
    _, weights = answer(attention, (torch.ones(3, 8, 4), alike, mask, positions))
    last = torch.tensor(LENGTHS) - 1
    assert (weights.argmax(-1) == last.clamp(max=place)[:, None]).all()


def test_asked_for_place_learns(inputs):
    attention = build_attention("local_p", 2)
    context, _ = answer(attention, inputs)
    context.square().sum().backward()
    assert attention.place.weight.grad.abs().sum() > 0
    assert attention.place_map.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("name", [name for name in SPANS if name != "monotonic"])
def test_place_is_the_number_of_steps(name, inputs):
    attention = build_attention(name, 1)
    place = attention.begin(attention.prepare(*inputs[1:3]), beams=2)
    assert place.tolist() == [0] * 6
    assert attention.advance(place, torch.zeros(6, NUM_KEYS)).tolist() == [1] * 6
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

    def test_place_is_where_it_looked_and_first_the_first_position(self, attention, inputs):
        place = attention.begin(attention.prepare(*inputs[1:3]), beams=2)
        assert place.tolist() == [[1.0, 0.0, 0.0, 0.0, 0.0, 0.0]] * 6
        weights = torch.rand(6, NUM_KEYS)
        assert attention.advance(place, weights) is weights
        assert attention.follows_weights

    def test_evaluation_chooses_by_gain_score_and_offset(self, attention, monotonic_inputs):
        queries, states, mask, places = monotonic_inputs
        context, weights = answer(attention.eval(), monotonic_inputs)
        energies = 1.5 * queries @ states.mT - 0.5
        assert torch.equal(weights, choose_ahead(energies, mask[:, None], places))
        assert 0 < (weights * places).sum() < 24  # some stay, some go
        chosen = states.gather(1, weights.argmax(-1)[..., None].expand(-1, -1, 4))
        assert torch.allclose(context, chosen)

    def test_training_expects_with_noise_on_the_energies(self, attention, monotonic_inputs):
        queries, states, mask, places = monotonic_inputs
        torch.manual_seed(7)
        context, weights = answer(attention.train(), monotonic_inputs)
        torch.manual_seed(7)
        energies = 1.5 * queries @ states.mT - 0.5 + attention.noise * torch.randn(3, 8, NUM_KEYS)
        assert torch.allclose(weights, expect_ahead(energies, mask[:, None], places), atol=1e-6)
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
