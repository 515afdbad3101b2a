import numpy as np
import pytest

from regard.core.errors import DataError
from regard.interpret.probes import PENALTIES, LinearProbe, r_squared


@pytest.fixture
def data():
    generator = np.random.default_rng(2)
    vectors = generator.normal(size=(80, 6)) * [1, 5, 0.1, 2, 1, 1] + 3
    values = vectors @ [1.0, -0.5, 20, 0, 0, 2] + 7
    return vectors, values, generator.normal(size=80)


def test_linear_values_are_predicted(data):
    vectors, values, _ = data
    probe = LinearProbe(vectors[:60], values[:60])
    assert r_squared(probe(vectors[60:]), values[60:]) > 0.999


def test_noise_is_not_predicted(data):
    vectors, _, noise = data
    probe = LinearProbe(vectors[:60], noise[:60])
    assert r_squared(probe(vectors[60:]), noise[60:]) < 0.2


def ridge(vectors, values, penalty):
    """Solve the normal equations of standardised columns."""
    mean, std = vectors.mean(0), vectors.std(0)
    inputs = (vectors - mean) / std
    solved = np.linalg.solve(
        inputs.T @ inputs + penalty * np.eye(inputs.shape[1]), inputs.T @ (values - values.mean())
    )
    return lambda new: (new - mean) / std @ solved + values.mean()


def test_probe_is_ridge_regression_with_the_penalty_of_leave_one_out(data):
    vectors, values, noise = data
    values = values + 5 * noise
    train, targets = vectors[:30], values[:30]

    def left_out(penalty):
        # The columns keep their scale; only the row is left out of the fit.
        inputs = (train - train.mean(0)) / train.std(0)
        hat = inputs @ np.linalg.solve(inputs.T @ inputs + penalty * np.eye(6), inputs.T) + 1 / 30
        return np.mean(((targets - hat @ targets) / (1 - np.diag(hat))) ** 2)

    best = min(PENALTIES, key=left_out)
    expected = ridge(train, targets, best)(vectors[30:])
    np.testing.assert_allclose(LinearProbe(train, targets)(vectors[30:]), expected, rtol=1e-8)


def test_more_columns_than_rows_are_possible():
    generator = np.random.default_rng(3)
    vectors = generator.normal(size=(60, 200))
    values = vectors[:, :40].sum(1)
    found = LinearProbe(vectors[:40], values[:40])(vectors[40:])
    assert r_squared(found, values[40:]) > -0.5


def test_constant_column_is_ignored(data):
    vectors, values, _ = data
    constant = np.concatenate([vectors, np.ones((80, 1))], axis=1)
    expected = LinearProbe(vectors, values)(vectors)
    np.testing.assert_allclose(LinearProbe(constant, values)(constant), expected)


def test_r_squared_of_perfect_mean_and_worse_predictions():
    values = np.array([1.0, 2.0, 3.0])
    assert r_squared(values, values) == 1
    assert r_squared(np.full(3, 2.0), values) == 0
    assert r_squared(np.zeros(3), values) == pytest.approx(1 - 14 / 2)


def test_r_squared_of_equal_values_is_refused():
    with pytest.raises(DataError, match="values that differ"):
        r_squared(np.zeros(3), np.ones(3))


def test_probe_of_one_vector_is_refused():
    with pytest.raises(DataError, match="at least 2 vectors to learn, but has 1"):
        LinearProbe(np.ones((1, 2)), np.ones(1))
