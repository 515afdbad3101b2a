import pytest

from regard.data.datasets.synthetic.toys import copy
from regard.studies.reproduce.transformers.training import (
    SMALL_TRANSFORMER,
    accuracy,
    read_recipe,
    train_small,
)

PAIRS = copy(30, limits=(2, 3))
SETTINGS = (
    "train.max_steps=4",
    "train.log_every=2",
    *(f"model.{side}.dim=8" for side in ("encoder", "decoder")),
)


def test_same_seed_gives_the_same_losses():
    first, second, other = (
        train_small(read_recipe(SMALL_TRANSFORMER, SETTINGS, seed=seed), PAIRS).losses
        for seed in (1, 1, 2)
    )
    assert first == second != other
    assert [step for step, _ in first] == [2, 4]


def test_training_is_observed_and_timed():
    observed = []
    training = train_small(
        read_recipe(SMALL_TRANSFORMER, SETTINGS, seed=1),
        PAIRS,
        observe=lambda each: observed.append(each.num_tokens),
    )
    assert len(observed) == 2
    assert training.num_tokens == observed[-1] > 0
    assert training.seconds > 0


def test_training_with_a_loss_that_is_not_finite_ends():
    settings = (*SETTINGS, "train.optimizer.learning_rate=1e30", "train.max_steps=50")
    training = train_small(read_recipe(SMALL_TRANSFORMER, settings, seed=1), PAIRS)
    assert training.losses[-1][0] < 50


def test_accuracy_counts_whole_outputs():
    task = train_small(read_recipe(SMALL_TRANSFORMER, SETTINGS, seed=1), PAIRS).task
    assert accuracy(task, PAIRS[:10]) == pytest.approx(0)
