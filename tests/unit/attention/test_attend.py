import math

import pytest
import torch

from regard.attention.attend import attend, masked_softmax, weighted_sum
from regard.attention.masks import causal_mask


def test_weights_are_the_softmax_of_the_scores():
    scores = torch.tensor([[0.1, -2.0, 3.0]])
    powers = [math.exp(score) for score in (0.1, -2.0, 3.0)]
    expected = [power / sum(powers) for power in powers]
    assert masked_softmax(scores)[0].tolist() == pytest.approx(expected, rel=1e-5)


def test_lecture_numbers():
    query, key = torch.tensor([0.6, 0.3, 0.8]), torch.tensor([0.5, 0.1, 0.9])
    score = (query @ key).item()
    assert score == pytest.approx(1.05)
    assert score / math.sqrt(3) == pytest.approx(0.606, abs=1e-3)
    weights = masked_softmax(torch.tensor([[score / math.sqrt(3), 0.2, -0.8]]))
    assert weights[0].tolist() == pytest.approx([0.523, 0.348, 0.128], abs=1e-3)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_weights_sum_to_one(dtype):
    torch.manual_seed(0)
    mask = torch.rand(2, 4, 5) < 0.5
    mask[..., 0] = True
    sums = masked_softmax((torch.randn(2, 4, 5) * 5).to(dtype), mask).sum(-1)
    assert torch.allclose(sums, torch.ones_like(sums))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_weights_of_half_precision_scores_are_float32(dtype):
    assert masked_softmax(torch.zeros(1, 2, dtype=dtype)).dtype == torch.float32


def test_double_precision_is_kept():
    assert masked_softmax(torch.zeros(1, 2, dtype=torch.float64)).dtype == torch.float64


def test_masked_keys_have_zero_weight_and_no_effect():
    scores = torch.tensor([[1.0, 2.0, 9.0]])
    weights = masked_softmax(scores, torch.tensor([True, True, False]))
    assert torch.equal(
        weights, torch.cat([masked_softmax(scores[:, :2]), torch.zeros(1, 1)], dim=1)
    )


def test_masked_infinite_score_is_harmless():
    weights = masked_softmax(torch.tensor([[1.0, math.inf]]), torch.tensor([True, False]))
    assert weights.tolist() == [[1.0, 0.0]]


def test_fully_masked_row_is_zero():
    mask = torch.tensor([[False, False], [True, True]])
    assert masked_softmax(torch.tensor([[3.0, -1.0], [0.0, 0.0]]), mask).tolist() == [
        [0, 0],
        [0.5, 0.5],
    ]


def test_fully_masked_row_has_zero_gradients():
    scores = torch.randn(2, 3, requires_grad=True)
    values = torch.randn(3, 4, requires_grad=True)
    mask = torch.tensor([[False] * 3, [True] * 3])
    weighted_sum(masked_softmax(scores, mask), values).square().sum().backward()
    assert scores.grad[0].tolist() == [0.0, 0.0, 0.0]
    assert scores.grad[1].abs().sum() > 0 and values.grad.isfinite().all()


def test_bias_is_added_to_the_scores():
    scores, bias = torch.randn(2, 3, 4), torch.randn(3, 4)
    assert torch.equal(masked_softmax(scores, bias=bias), masked_softmax(scores + bias))


def test_bias_does_not_unmask_keys():
    weights = masked_softmax(
        torch.zeros(1, 2), torch.tensor([True, False]), torch.tensor([0.0, 1e4])
    )
    assert weights.tolist() == [[1.0, 0.0]]


def test_context_is_the_weighted_sum():
    weights, values = torch.rand(2, 3, 4), torch.randn(2, 4, 5)
    expected = sum(weights[:, :, key, None] * values[:, None, key] for key in range(4))
    assert torch.allclose(weighted_sum(weights, values), expected, atol=1e-6)


def test_context_has_the_dtype_of_the_values():
    assert (
        weighted_sum(torch.ones(1, 2), torch.ones(2, 3, dtype=torch.bfloat16)).dtype
        == torch.bfloat16
    )


def test_masking_after_the_softmax_gives_different_weights():
    torch.manual_seed(0)
    scores, mask = torch.randn(5, 5), causal_mask(5, 5)
    late = scores.softmax(-1) * mask
    assert (late.sum(-1)[:-1] < 0.99).all()
    assert not torch.allclose(late, masked_softmax(scores, mask), atol=1e-2)


def test_masking_after_the_softmax_and_normalising_is_equal():
    torch.manual_seed(0)
    scores, mask = torch.randn(5, 5), causal_mask(5, 5)
    late = scores.softmax(-1) * mask
    assert torch.allclose(
        late / late.sum(-1, keepdim=True), masked_softmax(scores, mask), atol=1e-6
    )


# Cases for both computations: number of queries, keys and key heads, and further arguments.
CASES = {
    "plain": (4, 5, 4, ()),
    "mask": (4, 5, 4, ("mask",)),
    "bias": (4, 5, 4, ("bias",)),
    "mask and bias": (4, 5, 4, ("mask", "bias")),
    "causal square": (5, 5, 4, ("causal",)),
    "causal with a past": (2, 5, 4, ("causal",)),
    "causal single step": (1, 5, 4, ("causal",)),
    "causal and mask": (5, 5, 4, ("causal", "mask")),
    "causal and bias": (5, 5, 4, ("causal", "bias")),
    "causal, mask and bias": (3, 5, 4, ("causal", "mask", "bias")),
    "grouped keys": (4, 5, 2, ()),
    "grouped keys with everything": (3, 5, 2, ("causal", "mask", "bias")),
    "one key head": (4, 5, 1, ("mask",)),
}


def draw(num_queries, num_keys, num_key_heads, wanted):
    """Queries, keys and values to learn from, and how they are to be asked."""
    torch.manual_seed(0)
    queries = torch.randn(2, 4, num_queries, 3, requires_grad=True)
    keys, values = (torch.randn(2, num_key_heads, num_keys, 3, requires_grad=True) for _ in "kv")
    asked = {"is_causal": "causal" in wanted}
    if "mask" in wanted:
        asked["mask"] = torch.rand(2, 1, num_queries, num_keys) < 0.6
        asked["mask"][..., 0] = True
    if "bias" in wanted:
        asked["bias"] = torch.randn(1, 4, num_queries, num_keys)
    return (queries, keys, values), asked


@pytest.fixture(params=CASES.values(), ids=CASES)
def drawn(request):
    return draw(*request.param)


def gradients(inputs, context):
    return torch.autograd.grad(context.square().sum(), inputs)


def test_fused_kernel_equals_explicit_computation(drawn):
    inputs, asked = drawn
    fused, nothing = attend(*inputs, **asked)
    explicit, weights = attend(*inputs, **asked, needs_weights=True)
    assert nothing is None
    assert weights.shape == (*explicit.shape[:3], inputs[1].shape[2])
    assert torch.allclose(fused, explicit, atol=1e-6)


def test_gradients_of_both_computations_are_equal(drawn):
    inputs, asked = drawn
    fused = gradients(inputs, attend(*inputs, **asked)[0])
    explicit = gradients(inputs, attend(*inputs, **asked, needs_weights=True)[0])
    assert all(torch.allclose(*pair, atol=1e-5) for pair in zip(fused, explicit, strict=True))


def test_weights_are_those_of_the_formula(drawn):
    (queries, keys, values), asked = drawn
    context, weights = attend(queries, keys, values, **asked, needs_weights=True)
    num_queries, num_keys, group = queries.shape[2], keys.shape[2], 4 // keys.shape[1]
    for head in range(4):
        scores = queries[:, head] @ keys[:, head // group].mT / math.sqrt(3)
        if "bias" in asked:
            scores = scores + asked["bias"][:, head]
        allowed = asked.get("mask", torch.ones(2, 1, num_queries, num_keys).bool())[:, 0]
        if asked["is_causal"]:
            allowed = allowed & torch.ones(num_queries, num_keys).bool().tril(
                num_keys - num_queries
            )
        powers = scores.exp() * allowed
        expected = powers / powers.sum(-1, keepdim=True)
        assert torch.allclose(weights[:, head], expected, atol=1e-6)
        assert torch.allclose(context[:, head], expected @ values[:, head // group], atol=1e-6)


@pytest.mark.parametrize("needs_weights", [False, True], ids=["fused", "explicit"])
@pytest.mark.parametrize("with_bias", [False, True], ids=["mask", "mask-and-bias"])
def test_fully_masked_queries_are_zero_forward_and_backward(needs_weights, with_bias):
    inputs, asked = draw(3, 5, 4, ("mask", "bias") if with_bias else ("mask",))
    asked["mask"][0, :, 1] = False
    context, _ = attend(*inputs, **asked, needs_weights=needs_weights)
    assert (context[0, :, 1] == 0).all() and context.isfinite().all()
    for_queries, *others = gradients(inputs, context)
    assert (for_queries[0, :, 1] == 0).all() and for_queries[0, :, 0].abs().sum() > 0
    assert all(gradient.isfinite().all() for gradient in others)


@pytest.mark.parametrize("needs_weights", [False, True], ids=["fused", "explicit"])
def test_dropout_keeps_the_expectation(needs_weights):
    torch.manual_seed(0)
    queries, keys, values = torch.randn(1, 1, 2, 3), torch.randn(1, 1, 3, 3), torch.rand(1, 1, 3, 3)
    expected, _ = attend(queries, keys, values)
    many = (tensor.expand(900, -1, -1, -1) for tensor in (queries, keys, values))
    context, _ = attend(*many, dropout=0.3, needs_weights=needs_weights)
    assert context.std(0).min() > 0.05
    assert torch.allclose(context.mean(0, keepdim=True), expected, atol=0.05)


def test_returned_weights_are_those_before_dropout():
    inputs, _ = draw(4, 5, 4, ())
    _, weights = attend(*inputs, dropout=0.5, needs_weights=True)
    assert torch.allclose(weights.sum(-1), torch.ones(2, 4, 4))


@pytest.mark.parametrize(("dtype", "dropout"), [(torch.bfloat16, 0.0), (torch.float32, 0.5)])
def test_training_on_a_cpu_uses_the_faster_computation(dtype, dropout, monkeypatch):
    def never(*_, **__):
        raise AssertionError("the fused kernel is slow here")

    monkeypatch.setattr("regard.attention.attend.scaled_dot_product_attention", never)
    inputs, asked = draw(5, 5, 4, ("causal",))
    context, nothing = attend(*(one.to(dtype) for one in inputs), **asked, dropout=dropout)
    assert context.dtype == dtype
    assert nothing is None
