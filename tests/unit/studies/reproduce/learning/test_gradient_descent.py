import pytest
import torch

from regard.studies.reproduce.learning.gradient_descent import (
    best_slope,
    build_line,
    build_wave,
    curvature,
    descend,
)


@pytest.mark.parametrize("build", [build_line, build_wave])
@pytest.mark.parametrize("theta", [-1.0, 0.3, 2.5])
def test_gradient_equals_autograd(build, theta):
    model = build(1)
    leaf = torch.tensor(theta, dtype=torch.float64, requires_grad=True)
    cost = ((model.predict(model.x, leaf) - model.y) ** 2).mean()
    cost.backward()
    assert model.cost(theta) == pytest.approx(cost.item())
    assert model.gradient(theta) == pytest.approx(leaf.grad.item())


def test_steps_follow_the_formula():
    thetas = descend(lambda theta: 2 * theta, 1.0, rate=0.25, num_steps=3)
    assert thetas == [1, 0.5, 0.25, 0.125]


def test_best_slope_has_no_gradient():
    line = build_line(2)
    assert line.gradient(best_slope(line)) == pytest.approx(0, abs=1e-12)


def test_curvature_is_the_slope_of_the_gradient():
    line = build_line(2)
    assert line.gradient(1.0) - line.gradient(0.0) == pytest.approx(curvature(line))
