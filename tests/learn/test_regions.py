"""Segmentation and grounding of scenes."""

import pytest

pytestmark = pytest.mark.learn


def test_segmentation_of_scenes_is_learned(learn_scenes, value):
    trained = learn_scenes("scenes:regions,2000", "scenes-segmentation-laptop")
    assert value(trained, "iou") >= 75
    assert value(trained, "accuracy") >= 97


def test_grounding_of_phrases_is_learned(learn_scenes, value):
    trained = learn_scenes("scenes:boxes", "scenes-grounding-laptop", "train.max_epochs=6")
    assert value(trained, "accuracy") >= 70
    assert value(trained, "pointing") >= 85
