"""Image classifiers learn to distinguish shapes."""

import pytest

pytestmark = pytest.mark.learn


def test_residual_network_learns_shapes(learn_scenes, value):
    assert value(learn_scenes("shapes", "he2016-laptop"), "accuracy") >= 93


def test_vision_transformer_learns_shapes(learn_scenes, value):
    assert value(learn_scenes("shapes", "dosovitskiy2021-laptop"), "accuracy") >= 80
