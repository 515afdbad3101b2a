"""Images are drawn anew, cleaned, enlarged, coloured and foretold, better than without learning."""

import pytest

pytestmark = pytest.mark.learn


def test_images_come_back_from_sixteen_numbers(learn_scenes, value):
    trained = learn_scenes("shapes:4000", "hinton2006-laptop")
    assert value(trained, "psnr") >= 21.5


def test_drawn_codes_are_in_use_and_images_come_back(learn_scenes, value):
    trained = learn_scenes("shapes:4000", "kingma2014-laptop")
    assert value(trained, "psnr") >= 18
    assert value(trained, "active_units") >= 4


def test_noise_is_taken_away(learn_scenes, value):
    trained = learn_scenes("shapes:2000", "vincent2008-laptop")
    assert value(trained, "psnr") >= value(trained, "source_psnr") + 8


def test_enlarged_images_are_sharper_than_by_a_filter(learn_scenes, value):
    trained = learn_scenes("shapes:2000", "super-resolution-laptop")
    assert value(trained, "psnr") >= value(trained, "source_psnr") + 4


def test_grey_images_get_their_colours(learn_scenes, value):
    trained = learn_scenes("shapes:2000", "colouring-laptop")
    assert value(trained, "psnr") >= value(trained, "source_psnr") + 3


def test_next_frame_is_better_than_the_last_one_again(learn_scenes, value):
    trained = learn_scenes("moving:2000", "next-frame-laptop")
    assert value(trained, "psnr") >= value(trained, "source_psnr") + 2
