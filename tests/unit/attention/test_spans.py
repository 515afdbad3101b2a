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


def attend(attention, inputs):
    queries, states, mask, positions = inputs
    return attention(queries, attention.prepare(states, mask), positions)[:2]


def softmax(scores, allowed):
    """Softmax over the allowed keys, by hand."""
    powers = [math.exp(s) if a else 0.0 for s, a in zip(scores, allowed, strict=True)]
    return [power / sum(powers) for power in powers]


def predicted_centre(attention, query, length):
    hidden = torch.tanh(attention.position_map.weight @ query)
    return (length - 1) * torch.sigmoid(attention.position.weight[0] @ hidden).item()


def expected_weights(attention, inputs):
    """Weights of each kind of attention, with one loop per axis."""
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
                rows.append(softmax(scores, [j < length for j in range(NUM_KEYS)]))
                continue
            near = [abs(j - centre) <= attention.half_width and j < length for j in range(NUM_KEYS)]
            weights = softmax(scores, near)
            if isinstance(attention, LocalPredictiveAttention):
                std = attention.half_width / 2
                weights = [
                    weight * math.exp(-((j - centre) ** 2) / (2 * std**2))
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
    _, weights = attend(attention, inputs)
    assert torch.allclose(weights, expected_weights(attention, inputs), atol=1e-5)


def test_context_is_the_weighted_sum_of_the_states(attention, inputs):
    context, weights = attend(attention, inputs)
    assert torch.allclose(context, torch.einsum("bqs,bsd->bqd", weights, inputs[1]), atol=1e-6)


def test_padding_has_zero_weight(attention, inputs):
    _, weights = attend(attention, inputs)
    assert (weights.masked_select(~inputs[2][:, None].expand_as(weights)) == 0).all()


def test_every_query_has_nonzero_weights_even_beyond_the_source(attention, inputs):
    _, weights = attend(attention, inputs)
    assert (weights.sum(-1) > 0).all()


@pytest.mark.parametrize("name", ["global", "local_m"])
def test_weights_without_a_gaussian_sum_to_one(name, inputs):
    _, weights = attend(build_attention(name, 1), inputs)
    assert torch.allclose(weights.sum(-1), torch.ones(3, 8))


def test_moving_window_covers_the_neighbours_only(inputs):
    _, weights = attend(build_attention("local_m", 1), inputs)
    assert (weights[0, 2] > 0).tolist() == [False, True, True, True, False, False]


def test_moving_window_stays_at_the_end_of_the_source(inputs):
    _, weights = attend(build_attention("local_m", 1), inputs)
    assert (weights[1, 7] > 0).tolist() == [False, True, True, False, False, False]


@pytest.mark.parametrize(("weight", "position"), [(100.0, 5), (-100.0, 0)])
def test_predicted_window_stays_within_the_sentence(inputs, weight, position):
    attention = build_attention("local_p", 1)
    with torch.no_grad():
        attention.position_map.weight.fill_(1.0)
        attention.position.weight.fill_(weight)
    _, states, mask, positions = inputs
    equal_states = torch.zeros_like(states)
    _, weights = attend(attention, (torch.ones(3, 8, 4), equal_states, mask, positions))
    last = torch.tensor(LENGTHS) - 1
    assert (weights.argmax(-1) == last.clamp(max=position)[:, None]).all()


def test_predicted_position_gets_a_gradient(inputs):
    attention = build_attention("local_p", 2)
    context, _ = attend(attention, inputs)
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
        """Queries with one last position each, the first of them at the first position."""
        queries, states, mask, positions = inputs
        last = positions.minimum(mask.sum(-1, keepdim=True) - 1)
        return queries, states, mask, torch.nn.functional.one_hot(last, NUM_KEYS).float()

    def test_state_is_the_last_alignment_starting_at_the_first_position(self, attention, inputs):
        alignment = attention.start(attention.prepare(*inputs[1:3]), beams=2)
        assert alignment.tolist() == [[1.0, 0.0, 0.0, 0.0, 0.0, 0.0]] * 6
        weights = torch.rand(6, NUM_KEYS)
        assert attention.advance(alignment, weights) is weights
        assert attention.follows_weights

    def test_evaluation_selects_by_gain_score_and_offset(self, attention, monotonic_inputs):
        queries, states, mask, alignment = monotonic_inputs
        context, weights = attend(attention.eval(), monotonic_inputs)
        energies = 1.5 * queries @ states.mT - 0.5
        assert torch.equal(weights, choose_alignment(energies, mask[:, None], alignment))
        assert 0 < (weights * alignment).sum() < 24  # some stay, some move
        chosen = states.gather(1, weights.argmax(-1)[..., None].expand(-1, -1, 4))
        assert torch.allclose(context, chosen)

    def test_training_uses_the_expected_alignment_with_noise(self, attention, monotonic_inputs):
        queries, states, mask, alignment = monotonic_inputs
        torch.manual_seed(7)
        context, weights = attend(attention.train(), monotonic_inputs)
        torch.manual_seed(7)
        energies = 1.5 * queries @ states.mT - 0.5 + attention.noise * torch.randn(3, 8, NUM_KEYS)
        assert torch.allclose(
            weights, expect_alignment(energies, mask[:, None], alignment), atol=1e-6
        )
        assert torch.allclose(context, weights @ states, atol=1e-6)

    @pytest.mark.parametrize("is_training", [True, False])
    def test_noise_is_added_in_training_only(self, attention, monotonic_inputs, is_training):
        attention.train(is_training)
        torch.manual_seed(1)
        before = torch.get_rng_state()
        _, first = attend(attention, monotonic_inputs)
        assert torch.equal(torch.get_rng_state(), before) is not is_training
        _, second = attend(attention, monotonic_inputs)
        assert torch.equal(first, second) is not is_training

    def test_gain_and_offset_get_gradients(self, attention, monotonic_inputs):
        context, _ = attend(attention.train(), monotonic_inputs)
        context.square().sum().backward()
        assert attention.gain.grad.abs() > 0
        assert attention.offset.grad.abs() > 0

    def test_weights_of_half_precision_scores_are_float32(self, attention, monotonic_inputs):
        queries, states, mask, alignment = monotonic_inputs
        half = queries.bfloat16(), states.bfloat16(), mask, alignment
        for is_training in (True, False):
            context, weights = attend(attention.train(is_training), half)
            assert weights.dtype == torch.float32
            assert context.dtype == torch.bfloat16


MASK = torch.arange(NUM_KEYS) < torch.tensor(LENGTHS)[:, None, None]  # one row per sentence


def initial_alignment(mask, num_queries=4):
    """Alignment before the first step."""
    alignment = torch.zeros(mask.shape[0], num_queries, mask.shape[-1], dtype=torch.float64)
    alignment[..., 0] = 1.0
    return alignment


def sample_energies(scale=2.0):
    torch.manual_seed(0)
    return scale * torch.randn(3, 4, NUM_KEYS, dtype=torch.float64)


def run_steps(align, mask, num_steps=5):
    """Alignments of several steps."""
    alignment, found = initial_alignment(mask), []
    torch.manual_seed(1)
    for _ in range(num_steps):
        energies = torch.randn(*alignment.shape, dtype=torch.float64) - 0.5
        alignment = align(energies, mask, alignment)
        found.append(alignment)
    return torch.stack(found, dim=2)  # sentences, queries, steps, positions


def probabilities(energies, length):
    """p of one query: 1 at the last real position, 0 at padding."""
    probs = energies.sigmoid().tolist()[: length - 1]
    return [*probs, 1.0] + [0.0] * (len(energies) - length)


def product_of_complements(probs, start, end):
    rest = 1.0
    for position in range(start, end):
        rest *= 1 - probs[position]
    return rest


@pytest.mark.parametrize("row", range(3))
def test_expected_alignment_is_the_double_sum_of_the_paper(row):
    energies = sample_energies()
    alignment = run_steps(expect_alignment, MASK)[:, :, -1]
    found = expect_alignment(energies, MASK, alignment)
    for query in range(4):
        probs = probabilities(energies[row, query], LENGTHS[row])
        expected = [
            probs[j]
            * sum(
                alignment[row, query, k] * product_of_complements(probs, k, j) for k in range(j + 1)
            )
            for j in range(NUM_KEYS)
        ]
        assert found[row, query].tolist() == pytest.approx([float(x) for x in expected], abs=1e-12)


def recursion(energies, alignment):
    """q_j = (1 - p_{j-1}) q_{j-1} + α_j of the step before, and α_j = p_j q_j: eq. 13-14."""
    probs = probabilities(energies, len(energies))
    reached, found, before = 0.0, [], 0.0
    for prob, weight in zip(probs, alignment.tolist(), strict=True):
        reached = (1 - before) * reached + weight
        found.append(prob * reached)
        before = prob
    return found


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)], ids=["64", "32"]
)
@pytest.mark.parametrize("scale", [0.1, 5.0, 100.0])
def test_expected_alignment_equals_the_recursion_for_a_long_source(scale, dtype, tolerance):
    torch.manual_seed(2)
    mask = torch.ones(1, 1, 200, dtype=torch.bool)
    energies = scale * torch.randn(1, 1, 200, dtype=torch.float64) - 3.0
    alignment = torch.rand(1, 1, 200, dtype=torch.float64)
    alignment /= alignment.sum()
    found = expect_alignment(energies.to(dtype), mask, alignment.to(dtype))
    assert found.dtype == dtype
    assert found[0, 0].tolist() == pytest.approx(
        recursion(energies[0, 0], alignment[0, 0]), tolerance
    )


@pytest.mark.parametrize("scale", [0.1, 5.0, 100.0])
def test_gradients_are_finite_in_a_long_source(scale):
    torch.manual_seed(3)
    mask = torch.ones(1, 1, 200, dtype=torch.bool)
    steps = [(scale * torch.randn(1, 1, 200)).requires_grad_() for _ in range(3)]
    alignment = initial_alignment(mask, 1).float()
    for energies in steps:
        alignment = expect_alignment(energies, mask, alignment)
    (alignment * torch.arange(200)).sum().backward()
    for energies in steps:
        assert energies.grad.isfinite().all()
        assert energies.grad.abs().sum() > 0


def test_gradients_equal_finite_differences():
    mask = MASK[:2, :, :4]
    energies = sample_energies()[:2, :2, :4].requires_grad_()
    alignment = run_steps(expect_alignment, mask)[:, :2, -1].requires_grad_()
    assert torch.autograd.gradcheck(
        lambda *given: expect_alignment(given[0], mask, given[1]), (energies, alignment)
    )


@pytest.mark.parametrize("align", [expect_alignment, choose_alignment])
def test_weights_sum_to_one_and_are_zero_at_padding(align):
    weights = run_steps(align, MASK)
    assert torch.allclose(weights.sum(-1), torch.ones_like(weights[..., 0]))
    is_padding = ~MASK[:, :, None].expand_as(weights)
    assert (weights[is_padding] == 0).all()
    assert (weights >= 0).all()


def test_selected_position_is_the_first_likely_one_after_the_last():
    energies = sample_energies()
    last = torch.tensor([[0, 1, 3, 5], [0, 1, 2, 2], [0, 0, 0, 0]])
    alignment = torch.nn.functional.one_hot(last, NUM_KEYS).double()
    found = choose_alignment(energies, MASK, alignment)
    for row, length in enumerate(LENGTHS):
        for query in range(4):
            probs = probabilities(energies[row, query], length)
            chosen = next(j for j in range(last[row, query], length) if probs[j] >= 0.5)
            assert found[row, query].tolist() == [float(j == chosen) for j in range(NUM_KEYS)]


def test_selected_position_never_decreases():
    choices = run_steps(choose_alignment, MASK).argmax(-1)
    moves = choices.diff(dim=-1)
    assert (moves >= 0).all()
    assert (moves > 0).any()
    assert (moves == 0).any()


def test_expected_alignment_never_moves_back():
    """The cumulative weight up to a position never grows."""
    share = run_steps(expect_alignment, MASK).cumsum(-1)
    assert (share.diff(dim=2) <= 1e-12).all()
    assert (share.diff(dim=2) < -0.01).any()


def test_expected_alignment_equals_the_selection_for_extreme_energies():
    sure = sample_energies().sign() * 1e3
    last = torch.tensor([[0, 1, 3, 5], [0, 1, 2, 2], [0, 0, 0, 0]])
    alignment = torch.nn.functional.one_hot(last, NUM_KEYS).double()
    assert torch.equal(
        expect_alignment(sure, MASK, alignment), choose_alignment(sure, MASK, alignment)
    )


def test_expected_alignment_is_the_mean_over_all_selections():
    energies = sample_energies()[:1, :1, :4]
    is_selected = torch.tensor(list(itertools.product([True, False], repeat=4)))[None]
    mask = torch.ones(1, 1, 4, dtype=torch.bool)
    alignment = torch.tensor([[[0.0, 1.0, 0.0, 0.0]]]).double()
    probs = energies.sigmoid()
    likely = torch.where(is_selected, probs, 1 - probs).prod(-1, keepdim=True)
    selections = choose_alignment(is_selected.double() - 0.5, mask, alignment)
    expected = (likely * selections).sum(1, keepdim=True)
    assert torch.allclose(expect_alignment(energies, mask, alignment), expected)
