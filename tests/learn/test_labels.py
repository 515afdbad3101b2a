"""Networks of convolutions and of patches learn to tell shapes apart."""

import pytest

pytestmark = pytest.mark.learn


def test_a_residual_network_tells_shapes_apart(learn_scenes, value):
    assert value(learn_scenes("shapes", "he2016-laptop"), "accuracy") >= 93


def test_a_vision_transformer_tells_shapes_apart(learn_scenes, value):
    assert value(learn_scenes("shapes", "dosovitskiy2021-laptop"), "accuracy") >= 80
