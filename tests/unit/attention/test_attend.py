import math

import pytest
import torch

from regard.attention.attend import mix, weigh


def test_weights_are_the_exponentials_shared_out():
    scores = torch.tensor([[0.1, -2.0, 3.0]])
    powers = [math.exp(score) for score in (0.1, -2.0, 3.0)]
    expected = [power / sum(powers) for power in powers]
    assert weigh(scores)[0].tolist() == pytest.approx(expected, rel=1e-5)


def test_lecture_numbers():
    query, key = torch.tensor([0.6, 0.3, 0.8]), torch.tensor([0.5, 0.1, 0.9])
    score = (query @ key).item()
    assert score == pytest.approx(1.05)
    assert score / math.sqrt(3) == pytest.approx(0.606, abs=1e-3)
    weights = weigh(torch.tensor([[score / math.sqrt(3), 0.2, -0.8]]))
    assert weights[0].tolist() == pytest.approx([0.523, 0.348, 0.128], abs=1e-3)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_weights_sum_to_one(dtype):
    torch.manual_seed(0)
    mask = torch.rand(2, 4, 5) < 0.5
    mask[..., 0] = True
    sums = weigh((torch.randn(2, 4, 5) * 5).to(dtype), mask).sum(-1)
    assert torch.allclose(sums, torch.ones_like(sums))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_weights_are_never_narrower_than_float32(dtype):
    assert weigh(torch.zeros(1, 2, dtype=dtype)).dtype == torch.float32


def test_double_precision_is_kept():
    assert weigh(torch.zeros(1, 2, dtype=torch.float64)).dtype == torch.float64


def test_masked_keys_weigh_nothing_and_change_nothing():
    scores = torch.tensor([[1.0, 2.0, 9.0]])
    weights = weigh(scores, torch.tensor([True, True, False]))
    assert torch.equal(weights, torch.cat([weigh(scores[:, :2]), torch.zeros(1, 1)], dim=1))


def test_masked_infinite_score_is_harmless():
    weights = weigh(torch.tensor([[1.0, math.inf]]), torch.tensor([True, False]))
    assert weights.tolist() == [[1.0, 0.0]]


def test_row_with_nothing_to_attend_to_is_zero():
    mask = torch.tensor([[False, False], [True, True]])
    assert weigh(torch.tensor([[3.0, -1.0], [0.0, 0.0]]), mask).tolist() == [[0, 0], [0.5, 0.5]]


def test_row_with_nothing_to_attend_to_sends_zeros_back():
    scores = torch.randn(2, 3, requires_grad=True)
    values = torch.randn(3, 4, requires_grad=True)
    mask = torch.tensor([[False] * 3, [True] * 3])
    mix(weigh(scores, mask), values).square().sum().backward()
    assert scores.grad[0].tolist() == [0.0, 0.0, 0.0]
    assert scores.grad[1].abs().sum() > 0 and values.grad.isfinite().all()


def test_bias_is_added_before_the_weights_are_shared_out():
    scores, bias = torch.randn(2, 3, 4), torch.randn(3, 4)
    assert torch.equal(weigh(scores, bias=bias), weigh(scores + bias))


def test_bias_does_not_open_masked_keys():
    weights = weigh(torch.zeros(1, 2), torch.tensor([True, False]), torch.tensor([0.0, 1e4]))
    assert weights.tolist() == [[1.0, 0.0]]


def test_mix_is_the_weighted_sum():
    weights, values = torch.rand(2, 3, 4), torch.randn(2, 4, 5)
    expected = sum(weights[:, :, key, None] * values[:, None, key] for key in range(4))
    assert torch.allclose(mix(weights, values), expected, atol=1e-6)


def test_context_has_the_type_of_the_values():
    assert mix(torch.ones(1, 2), torch.ones(2, 3, dtype=torch.bfloat16)).dtype == torch.bfloat16
