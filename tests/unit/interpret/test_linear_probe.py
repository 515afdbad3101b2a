import numpy as np
import pytest

from regard.core.errors import DataError
from regard.interpret.probes import PENALTIES, LinearProbe, r_squared


@pytest.fixture
def drawn():
    generator = np.random.default_rng(2)
    vectors = generator.normal(size=(80, 6)) * [1, 5, 0.1, 2, 1, 1] + 3
    values = vectors @ [1.0, -0.5, 20, 0, 0, 2] + 7
    return vectors, values, generator.normal(size=80)


def test_what_is_linear_is_read_off_wholly(drawn):
    vectors, values, _ = drawn
    probe = LinearProbe(vectors[:60], values[:60])
    assert r_squared(probe(vectors[60:]), values[60:]) > 0.999


def test_what_is_not_there_is_not_found(drawn):
    vectors, _, noise = drawn
    probe = LinearProbe(vectors[:60], noise[:60])
    assert r_squared(probe(vectors[60:]), noise[60:]) < 0.2


def ridge(vectors, values, penalty):
    """The textbook: solve the normal equations of standardised columns."""
    mean, deviation = vectors.mean(0), vectors.std(0)
    wide = (vectors - mean) / deviation
    solved = np.linalg.solve(
        wide.T @ wide + penalty * np.eye(wide.shape[1]), wide.T @ (values - values.mean())
    )
    return lambda new: (new - mean) / deviation @ solved + values.mean()


def test_probe_is_ridge_regression_with_the_penalty_that_leaving_one_out_chooses(drawn):
    vectors, values, noise = drawn
    values = values + 5 * noise
    learned, told = vectors[:30], values[:30]

    def left_out(penalty):
        # The columns keep their scale: only the row's part in the fit is taken away.
        wide = (learned - learned.mean(0)) / learned.std(0)
        hat = wide @ np.linalg.solve(wide.T @ wide + penalty * np.eye(6), wide.T) + 1 / 30
        return np.mean(((told - hat @ told) / (1 - np.diag(hat))) ** 2)

    best = min(PENALTIES, key=left_out)
    expected = ridge(learned, told, best)(vectors[30:])
    np.testing.assert_allclose(LinearProbe(learned, told)(vectors[30:]), expected, rtol=1e-8)


def test_more_columns_than_rows_do_no_harm():
    generator = np.random.default_rng(3)
    vectors = generator.normal(size=(60, 200))
    values = vectors[:, :40].sum(1)
    found = LinearProbe(vectors[:40], values[:40])(vectors[40:])
    assert r_squared(found, values[40:]) > -0.5


def test_column_that_never_changes_is_left_out(drawn):
    vectors, values, _ = drawn
    constant = np.concatenate([vectors, np.ones((80, 1))], axis=1)
    expected = LinearProbe(vectors, values)(vectors)
    np.testing.assert_allclose(LinearProbe(constant, values)(constant), expected)


def test_share_that_is_explained():
    values = np.array([1.0, 2.0, 3.0])
    assert r_squared(values, values) == 1
    assert r_squared(np.full(3, 2.0), values) == 0
    assert r_squared(np.zeros(3), values) == pytest.approx(1 - 14 / 2)


def test_values_that_are_all_equal_are_refused():
    with pytest.raises(DataError, match="values that differ"):
        r_squared(np.zeros(3), np.ones(3))


def test_probe_of_one_vector_is_refused():
    with pytest.raises(DataError, match="at least 2 vectors to learn, but has 1"):
        LinearProbe(np.ones((1, 2)), np.ones(1))
