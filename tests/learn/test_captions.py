"""Caption models learn exact captions of scenes and attend to the named objects."""

import pytest

pytestmark = pytest.mark.learn


def points_better_than_chance(trained, *, times):
    """Return whether the pointing accuracy is at least `times` that of chance."""
    pointing = trained.evaluation.results["pointing"]
    return pointing.value >= times * pointing.detail["chance"]


def test_soft_attention_learns_exact_captions(captioner, value):
    # Three seeds had 96.2 to 97.8 and 97.6 to 98.6, after 1,500 or 1,600 steps.
    assert value(captioner, "accuracy") >= 94
    assert value(captioner, "bleu4") >= 96
    assert points_better_than_chance(captioner, times=4)


def test_hard_attention_learns_captions_and_attends_to_named_objects(learn_scenes, value):
    trained = learn_scenes("scenes", "xu2015-hard-laptop")
    # Seed 1 had 96 and 98, seed 2 97 and 99.
    assert value(trained, "accuracy") >= 90
    assert value(trained, "bleu4") >= 93
    assert points_better_than_chance(trained, times=4)


def test_transformers_learn_captions(learn_scenes, value):
    trained = learn_scenes("scenes", "vit-captions-laptop")
    # Seven seeds had 97.0 to 98.4 and 98.3 to 99.1, after 1,600 or 1,700 steps.
    assert value(trained, "accuracy") >= 95
    assert value(trained, "bleu4") >= 96
    assert points_better_than_chance(trained, times=3)
