import math

import pytest
import torch

from regard.attention.pooling import AttentionPooling, KernelRegression, average_pool, max_pool
from regard.attention.scores import SCORES, ScaledDotScore

LENGTHS = [4, 1, 3]


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture
def texts():
    return torch.randn(3, 4, 5), torch.arange(4) < torch.tensor(LENGTHS)[:, None]


def test_average_pooling_is_the_mean_of_the_real_positions(texts):
    pooled = average_pool(*texts)
    for row, length in enumerate(LENGTHS):
        assert torch.allclose(pooled[row], texts[0][row, :length].mean(0), atol=1e-6)


def test_max_pooling_is_the_largest_of_the_real_positions(texts):
    values, mask = texts
    pooled = max_pool(values - 10, mask)
    for row, length in enumerate(LENGTHS):
        assert torch.equal(pooled[row], (values - 10)[row, :length].max(0).values)


@pytest.mark.parametrize("name", SCORES)
def test_pooling_accepts_any_score(name):
    pooling = AttentionPooling(SCORES[name](4, 4, max_source=6))
    queries, keys, values = torch.randn(2, 3, 4), torch.randn(2, 6, 4), torch.randn(2, 6, 5)
    pooled, weights = pooling(queries, keys, values)
    assert torch.allclose(weights.sum(-1), torch.ones(2, 3))
    assert torch.allclose(pooled, torch.einsum("bqk,bkd->bqd", weights, values), atol=1e-6)


def test_pooling_ignores_masked_keys():
    pooling = AttentionPooling(ScaledDotScore(4, 4))
    queries, keys, values = torch.randn(3, 4), torch.randn(6, 4), torch.randn(6, 5)
    mask = torch.tensor([True, True, False, True, False, False])
    pooled, weights = pooling(queries, keys, values, mask=mask)
    expected, _ = pooling(queries, keys[mask], values[mask])
    assert (weights[:, ~mask] == 0).all()
    assert torch.allclose(pooled, expected, atol=1e-6)


def kernel(distance):
    return math.exp(-(distance**2) / 2)


@pytest.mark.parametrize("sharpness", [1.0, 3.0])
def test_kernel_regression_is_that_of_nadaraya_and_watson(sharpness):
    regression = KernelRegression(is_learned=True)
    torch.nn.init.constant_(regression.pooling.score.sharpness, sharpness)
    queries, keys, values = torch.rand(4) * 5, torch.rand(6) * 5, torch.randn(6)
    predicted, weights = regression(queries, keys, values)
    for i, x in enumerate(queries.tolist()):
        kernels = [kernel(sharpness * (x - seen)) for seen in keys.tolist()]
        expected = [each / sum(kernels) for each in kernels]
        assert weights[i].tolist() == pytest.approx(expected, abs=1e-5)
        mean = sum(weight * y for weight, y in zip(expected, values.tolist(), strict=True))
        assert predicted[i].item() == pytest.approx(mean, abs=1e-5)


def test_weights_are_symmetric_and_maximal_on_the_diagonal():
    x = torch.linspace(0, 4, 5)
    _, weights = KernelRegression(is_learned=False)(x, x, x)
    assert weights.argmax(-1).tolist() == [0, 1, 2, 3, 4]
    assert weights[2, 1].item() == pytest.approx(weights[2, 3].item(), abs=1e-6)


def test_narrow_kernel_reproduces_the_training_points():
    regression = KernelRegression(is_learned=True)
    torch.nn.init.constant_(regression.pooling.score.sharpness, 50.0)
    x, y = torch.linspace(0, 4, 5), torch.randn(5)
    predicted, _ = regression(x, x, y)
    assert torch.allclose(predicted, y, atol=1e-4)


def test_infinitely_wide_kernel_is_average_pooling():
    regression = KernelRegression(is_learned=True)
    torch.nn.init.constant_(regression.pooling.score.sharpness, 0.0)
    y = torch.randn(6)
    predicted, _ = regression(torch.rand(4), torch.rand(6), y)
    assert torch.allclose(predicted, y.mean().expand(4), atol=1e-6)


def test_training_point_can_be_masked():
    x = torch.linspace(0, 4, 5)
    _, weights = KernelRegression(is_learned=True)(x, x, x, mask=~torch.eye(5).bool())
    assert (weights.diagonal() == 0).all()


@pytest.mark.parametrize("is_learned", [False, True], ids=["fixed", "learned"])
def test_sharpness_is_trained_only_if_learned(is_learned):
    regression = KernelRegression(is_learned=is_learned)
    assert regression.pooling.score.sharpness.requires_grad == is_learned


def test_learned_sharpness_fits_the_points_better():
    regression = KernelRegression(is_learned=True)
    x = torch.linspace(0, 4, 40)
    y = 2 * x.sin() + x**0.8
    others = ~torch.eye(40).bool()
    optimizer = torch.optim.SGD(regression.parameters(), lr=0.5)
    losses = []
    for _ in range(20):
        predicted, _ = regression(x, x, y, mask=others)
        loss = (predicted - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 4
