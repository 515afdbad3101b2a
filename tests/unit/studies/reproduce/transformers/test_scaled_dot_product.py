import pytest
import torch

from regard.studies.reproduce.transformers.scaled_dot_product import (
    RAW,
    SCALED,
    VARIANCE,
    measure_softmax,
    softmax_gradients,
    work_example,
)


def test_worked_example_is_that_of_the_lecture():
    rows = work_example()
    assert [row["difference"] < 1e-3 for row in rows.values()] == [True] * 4
    assert rows["softmax(0.606, 0.2, −0.8)"]["computed"] == "0.5232, 0.3486, 0.1282"


def test_norm_of_the_jacobian_equals_autograd():
    scores = torch.randn(6, generator=torch.Generator().manual_seed(1))
    jacobian = torch.autograd.functional.jacobian(lambda one: one.softmax(0), scores)
    assert softmax_gradients(scores.softmax(0)[None]).item() == pytest.approx(
        jacobian.norm().item(), rel=1e-5
    )


def test_variance_of_products_is_the_width():
    rows = measure_softmax(16, seed=1)
    assert rows[RAW][VARIANCE] == pytest.approx(16, rel=0.1)
    assert rows[SCALED][VARIANCE] == pytest.approx(1, rel=0.1)


def test_forms_are_equal_at_width_one():
    rows = measure_softmax(1, seed=2)
    assert rows[RAW] == rows[SCALED]
