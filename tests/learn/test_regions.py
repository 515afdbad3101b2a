"""Heads on scenes learn where things are: a label for each patch, and the box of a phrase."""

import pytest

pytestmark = pytest.mark.learn


def test_patches_of_scenes_get_their_shapes(learn_scenes, value):
    trained = learn_scenes("scenes:regions,2000", "scenes-segmentation-laptop")
    assert value(trained, "iou") >= 75
    assert value(trained, "accuracy") >= 97


def test_phrases_find_their_things(learn_scenes, value):
    trained = learn_scenes("scenes:boxes", "scenes-grounding-laptop", "train.max_epochs=6")
    assert value(trained, "accuracy") >= 70
    assert value(trained, "pointing") >= 85
