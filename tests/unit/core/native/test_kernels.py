"""Kernels equal the operations of torch, and each row depends on its own inputs alone."""

import pytest
import torch
from torch.nn.functional import linear

from regard.core.native import kernels
from regard.core.native.kernels import NativeProduct
from regard.models.recurrent import gru_cell, lstm_cell
from regard.search.backtracking import Step
from regard.search.candidates import TopCandidates
from regard.search.top_k import top_continuations

pytestmark = pytest.mark.skipif(kernels.find_kernels() is None, reason="there is no C++ compiler")

SIZES = [(1, 1), (5, 3), (33, 17), (32, 256), (100, 64), (129, 700)]
PRECISIONS = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(
            not (
                kernels.find_kernels()
                and kernels.find_kernels().supported_precisions() >> number & 1
            ),
            reason="the processor has no instructions for this precision",
        ),
    )
    for name, number in kernels.PRECISIONS.items()
]


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture
def without_kernels(monkeypatch):
    def disable():
        monkeypatch.setattr(kernels, "find_kernels", lambda: None)

    return disable


def rounded(tensor, precision):
    """The values of inputs or weights in a precision, one scale per row."""
    if precision == "fp32":
        return tensor.double()
    if precision == "bf16":
        return tensor.bfloat16().double()
    scales = kernels.row_scales(tensor)
    return ((tensor / scales).round() * scales).double()


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("num_rows", [1, 5, 12, 13, 40])
def test_product_is_that_of_the_rounded_factors(precision, size, num_rows):
    weight, bias, inputs = torch.randn(size), torch.randn(size[0]), torch.randn(num_rows, size[1])
    found = NativeProduct(weight, bias, precision)(inputs)
    exact = linear(rounded(inputs, precision), rounded(weight, precision), bias.double())
    # A scale of int8 is rounded, so an input between two integers may be rounded to the other one.
    bound = 1e-5 if precision != "int8" else 2e-2
    torch.testing.assert_close(found.double(), exact, atol=bound * size[1] ** 0.5, rtol=1e-5)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("size", SIZES)
def test_a_row_of_a_product_does_not_depend_on_the_others(precision, size):
    product = NativeProduct(torch.randn(size), None, precision)
    inputs = torch.randn(29, size[1])
    together = product(inputs)
    for num_rows in (1, 3, 12, 13):
        rows = torch.cat([product(part) for part in inputs.split(num_rows)])
        assert torch.equal(rows, together)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_threads_change_no_bit(monkeypatch, precision):
    product = NativeProduct(torch.randn(70, 48), torch.randn(70), precision)
    inputs = torch.randn(kernels.MIN_THREAD_ROWS + 7, 48)
    alone = product(inputs)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert torch.equal(product(inputs), alone)


def test_product_of_other_widths_is_refused():
    product = NativeProduct(torch.randn(4, 64), None, "fp32")
    with pytest.raises(ValueError, match="must have 64 columns"):
        product(torch.randn(1, 3))


def test_product_does_not_drop_gradients():
    product = NativeProduct(torch.randn(4, 8), None, "fp32")
    inputs = torch.randn(1, 8, requires_grad=True)
    with pytest.raises(RuntimeError, match="no gradients"):
        product(inputs)
    with torch.no_grad():
        assert product(inputs).shape == (1, 4)


def test_memory_that_cannot_be_allocated_is_an_error():
    with pytest.raises(MemoryError, match="smaller batches"):
        kernels.check(1)
    kernels.check(0)


@pytest.mark.parametrize("activation", ["none", "relu", "silu"])
def test_activation_is_that_of_torch(activation):
    weight, inputs = torch.randn(40, 24), torch.randn(2, 3, 24)
    plain = linear(inputs, weight)
    expected = {"none": plain, "relu": plain.relu(), "silu": torch.nn.functional.silu(plain)}
    found = NativeProduct(weight, None, "fp32").map(inputs, activation)
    torch.testing.assert_close(found, expected[activation], atol=1e-5, rtol=1e-5)


def test_activation_does_not_hide_nan():
    inputs = torch.tensor([[torch.nan, 1.0]])
    for activation in ("relu", "silu"):
        assert NativeProduct(torch.ones(3, 2), None, "fp32").map(inputs, activation).isnan().all()


@pytest.mark.parametrize("vocab", [2, 15, 16, 100, 1000])
def test_log_softmax_is_that_of_torch(vocab):
    logits = 10 * torch.randn(3, 2, vocab)
    logits[0, 0, 1] = -torch.inf
    logits[1, 0] += 1000
    banned = torch.tensor([0])
    expected = logits.log_softmax(-1).index_fill(-1, banned, -torch.inf)
    found = kernels.log_softmax(logits, banned)
    assert found is logits
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-6)


@pytest.mark.parametrize("vocab", [5, 40])
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_log_softmax_does_not_hide_numbers_that_are_not_finite(vocab, value):
    logits = torch.randn(2, vocab)
    logits[0, vocab - 1] = value
    expected = logits.log_softmax(-1)
    found = kernels.log_softmax(logits, torch.tensor([], dtype=torch.long))
    assert found[0].isnan().any() and expected[0].isnan().any()
    torch.testing.assert_close(found[1], expected[1], atol=1e-5, rtol=1e-6)


@pytest.mark.parametrize("has_ties", [False, True])
@pytest.mark.parametrize(("beams", "vocab", "k"), [(1, 5, 5), (3, 70, 6), (5, 1000, 10), (2, 2, 4)])
def test_largest_continuations_are_those_of_torch(beams, vocab, k, has_ties):
    totals, log_probs = torch.randn(4, beams), torch.randn(4 * beams, vocab)
    if has_ties:
        log_probs = log_probs.round()
        totals = totals.round()
    totals[1, 0] = -torch.inf
    values, indices = kernels.find_top(totals, log_probs, k)
    sums = (totals.flatten()[:, None] + log_probs).view(4, -1)
    assert torch.equal(values, sums.topk(k).values)
    assert torch.equal(sums.gather(1, indices), values)
    assert all(len(set(row)) == k for row in indices.tolist())
    # Of equal continuations, the first.
    assert torch.equal(indices, (-sums).argsort(dim=1, stable=True)[:, :k])


def test_kernel_chooses_the_continuations_of_top_k(without_kernels):
    totals, log_probs = torch.randn(3, 4), torch.randn(12, 3000).log_softmax(-1)
    found = top_continuations(totals, log_probs, 8)
    without_kernels()
    expected = top_continuations(totals, log_probs, 8)
    assert all(torch.equal(*pair) for pair in zip(found, expected, strict=True))


def test_step_of_beam_search_is_that_of_torch(without_kernels):
    beams, vocab = 3, 11
    totals, log_probs = torch.randn(6, beams), torch.randn(6 * beams, vocab).log_softmax(-1)
    log_probs[:6, 4] = 0.0  # ends
    log_probs[3] = -torch.inf
    totals[5] = -torch.inf
    limits = torch.tensor([9, 0, 9, 0, 4, 0, 9, 0, 9, 0, 9, 0])[::2]
    arguments = {"candidates": TopCandidates(beams), "limits": limits, "length": 4, "end": 4}
    found = Step.choose(totals, log_probs, **arguments)
    without_kernels()
    expected = Step.choose(totals, log_probs, **arguments)
    active = expected.totals > -torch.inf
    for name in ("totals", "is_finished", "finished", "next_totals"):
        assert torch.equal(getattr(found, name), getattr(expected, name)), name
    # Which of several impossible continuations are named does not matter.
    for name in ("tokens", "parents", "log_probs", "is_end"):
        assert torch.equal(getattr(found, name)[active], getattr(expected, name)[active]), name
    alive = expected.next_totals > -torch.inf
    for name in ("kept", "next_tokens", "next_rows"):
        assert torch.equal(getattr(found, name)[alive], getattr(expected, name)[alive]), name


@pytest.mark.parametrize("dim", [1, 16, 37])
def test_recurrent_cells_are_those_of_torch(dim):
    inputs, hidden = 3 * torch.randn(2, 7, 4 * dim)
    state, cell = torch.randn(2, 7, dim)
    three = slice(0, 3 * dim)
    parts = inputs[:, three].contiguous(), hidden[:, three].contiguous()
    expected = gru_cell(*parts, (state,))[0]
    torch.testing.assert_close(kernels.gru(*parts, state), expected, atol=1e-6, rtol=1e-5)
    expected = lstm_cell(inputs, None, (state, cell))
    torch.testing.assert_close(kernels.lstm(inputs, cell), expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("dim", [1, 16, 90])
def test_additive_scores_are_those_of_torch(dim):
    queries, keys, weight = torch.randn(2, 3, dim), torch.randn(2, 5, dim), torch.randn(1, dim)
    exponentials = (2 * keys).clamp(-40, 40).exp()
    found = kernels.score_additively(queries, exponentials, weight, limit=40.0)
    expected = linear((queries[:, :, None] + keys[:, None]).tanh(), weight)[..., 0]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("num_keys", "dim"), [(1, 1), (20, 48), (17, 70), (33, 128)])
def test_softmax_and_sum_are_those_of_torch(num_keys, dim):
    scores, values = 5 * torch.randn(3, 2, num_keys), torch.randn(3, num_keys, dim)
    mask = torch.rand(3, num_keys) > 0.3
    mask[:, 0] = True
    mask[2] = False
    context, weights = kernels.mix(scores, values, mask)
    expected = scores.masked_fill(~mask[:, None], -torch.inf).softmax(-1).nan_to_num(0.0)
    torch.testing.assert_close(weights, expected, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(context, expected @ values, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    "logits", [torch.zeros(2, 4).double(), torch.zeros(4, 2).t()], ids=["double", "strided"]
)
def test_other_tensors_are_left_to_torch(logits):
    assert kernels.log_softmax(logits, torch.tensor([0])) is None
    assert kernels.find_top(torch.zeros(2, 1), logits, 1) is None
