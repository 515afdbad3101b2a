"""Image-to-image models are better than trivial baselines."""

import pytest

pytestmark = pytest.mark.learn


def test_autoencoder_reconstructs_images_from_sixteen_dimensions(learn_scenes, value):
    trained = learn_scenes("shapes:4000", "hinton2006-laptop")
    assert value(trained, "psnr") >= 21.5


def test_variational_autoencoder_uses_its_latent_and_reconstructs_images(learn_scenes, value):
    trained = learn_scenes("shapes:4000", "kingma2014-laptop")
    assert value(trained, "psnr") >= 18
    assert value(trained, "active_units") >= 4


def test_denoising_removes_noise(learn_scenes, value):
    trained = learn_scenes("shapes:2000", "vincent2008-laptop")
    assert value(trained, "psnr") >= value(trained, "source_psnr") + 8


def test_super_resolution_is_better_than_bicubic_interpolation(learn_scenes, value):
    trained = learn_scenes("shapes:2000", "super-resolution-laptop")
    assert value(trained, "psnr") >= value(trained, "source_psnr") + 4


def test_colouring_is_better_than_grey(learn_scenes, value):
    trained = learn_scenes("shapes:2000", "colouring-laptop")
    assert value(trained, "psnr") >= value(trained, "source_psnr") + 3


def test_next_frame_is_better_than_repeating_the_last(learn_scenes, value):
    trained = learn_scenes("moving:2000", "next-frame-laptop")
    assert value(trained, "psnr") >= value(trained, "source_psnr") + 2
