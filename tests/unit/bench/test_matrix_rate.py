import pytest
import torch

from regard.bench import matrix_rate
from regard.bench.matrix_rate import MatrixRate
from regard.bench.products import Product
from regard.core.native.linear import has_onednn

CPU = torch.device("cpu")


@pytest.fixture
def small_square(monkeypatch):
    monkeypatch.setattr(matrix_rate, "SQUARE", {"cpu": 10})


@pytest.fixture
def without_onednn(monkeypatch):
    monkeypatch.setattr(matrix_rate, "has_onednn", lambda: False)


def build(products):
    return MatrixRate(products, dtype=torch.float32, device=CPU)


def test_rate_is_weighted_by_operations(small_square, without_onednn, monkeypatch):
    durations = iter([1.0] * 3 + [10.0] * 3 + [2.0] * 3)
    monkeypatch.setattr(matrix_rate, "time_call", lambda *_: next(durations))
    quick, slow = Product(2, 2, 2, count=4), Product(4, 4, 4, batch=3)
    rate = build([quick, slow])
    rate.measure(0.0)
    seconds = 3 * (4 * 1.0 + 10.0)
    assert rate.model == pytest.approx(3 * (quick.flops + slow.flops) / seconds)
    assert rate.square == pytest.approx(2 * 10**3 / 2.0)


def test_fastest_measurement_counts(small_square, without_onednn, monkeypatch):
    durations = iter([4.0] * 6 + [2.0] * 6 + [8.0] * 6)
    monkeypatch.setattr(matrix_rate, "time_call", lambda *_: next(durations))
    rate = build([Product(2, 2, 2)])
    for _ in range(3):
        rate.measure(0.0)
    assert rate.model == pytest.approx(2 * 2**3 / 2.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_all_passes_are_computed_in_the_given_type(dtype):
    product = Product(2, 3, 5, batch=4)
    results = [compute() for (compute,) in matrix_rate._passes(product, dtype, CPU)]
    assert [tuple(one.shape) for one in results] == [(4, 2, 5), (4, 2, 3), (4, 5, 3)]
    assert {one.dtype for one in results} == {dtype}


@pytest.mark.skipif(not has_onednn(), reason="torch was built without oneDNN")
def test_onednn_computes_the_same_products_and_the_faster_library_counts(small_square, monkeypatch):
    for computations in matrix_rate._passes(Product(2, 3, 5), torch.float32, CPU):
        one, other = (compute() for compute in computations)
        torch.testing.assert_close(one, other)
    durations = iter([4.0, 2.0] * 6)
    monkeypatch.setattr(matrix_rate, "time_call", lambda *_: next(durations))
    rate = build([Product(2, 2, 2)])
    rate.measure(0.0)
    assert rate.model == pytest.approx(2 * 2**3 / 2.0)


def test_time_of_a_call_is_the_mean_of_repeated_calls():
    calls = []
    seconds = matrix_rate.time_call(lambda: calls.append(1), 1e-3, CPU)
    assert 0 < seconds < 1e-3
    assert len(calls) > 3


def test_call_that_takes_long_is_made_once():
    calls = []
    assert matrix_rate.time_call(lambda: calls.append(1), 0.0, CPU) > 0
    assert len(calls) == 1
