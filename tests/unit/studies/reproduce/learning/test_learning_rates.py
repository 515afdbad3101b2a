import pytest
import torch

from regard.studies.reproduce.learning.learning_rates import (
    METHODS,
    SURFACES,
    Run,
    by_formula,
    minimise,
    steps_away,
    steps_to,
)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("surface", SURFACES.values(), ids=SURFACES)
def test_optimiser_of_the_package_follows_the_formula(name, surface):
    ours = torch.stack(by_formula(name, surface, rate=0.01, num_steps=30))
    run = minimise(surface, METHODS[name], rate=0.01, num_steps=30)
    assert torch.allclose(ours, torch.tensor(run.path, dtype=torch.float64), atol=1e-9)


def test_first_step_of_adagrad_has_the_size_of_the_rate():
    run = minimise(SURFACES["ravine"], METHODS["AdaGrad"], rate=0.5, num_steps=1)
    assert run.path[1] == pytest.approx((-3.5, 0.5))


def test_steps_count_until_the_cost_stays_low():
    assert steps_to(Run(1, [], [8, 1, 4, 1, 1]), 0.125) == 3
    assert steps_to(Run(1, [], [8, 1, 4]), 0.125) is None


def test_steps_count_until_the_saddle_is_left():
    assert steps_away(Run(1, [(0, 0.1), (0, 0.4), (0, -0.6)], [])) == 2
    assert steps_away(Run(1, [(0, 0.1)], [])) is None
