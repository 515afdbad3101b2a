"""Image to image: every encoder of images with every generator."""

import pytest
import torch

from regard.core.errors import ConfigError
from regard.core.specs import ImageSpec, VideoSpec
from regard.models.bottlenecks import VariationalBottleneckConfig
from regard.models.encoders.bottleneck import BottleneckEncoderConfig
from regard.models.encoders.video import VideoEncoderConfig
from regard.models.generators import AttentionGeneratorConfig, ConvolutionGeneratorConfig
from regard.models.image_to_image import ImageToImage, ImageToImageConfig

TARGET = (1, 12, 8)
MASK = torch.ones(3, 1, dtype=torch.bool)
GENERATORS = {
    "convolution": ConvolutionGeneratorConfig(widths=(4, 3), blocks=(1, 1)),
    "attention": AttentionGeneratorConfig(
        dim=8, num_layers=1, num_heads=2, feed_forward_dim=5, dropout=0.0
    ),
}


def build(encoder, generator, size, **settings):
    torch.manual_seed(0)
    config = ImageToImageConfig(encoder=encoder, generator=GENERATORS[generator], **settings)
    model = ImageToImage(config, size, ImageSpec(*TARGET))
    with torch.no_grad():
        for parameter in model.generator.parameters():
            if not parameter.any():
                parameter.normal_(0, 0.3)
    return model.eval()


@pytest.mark.parametrize("generator", GENERATORS)
def test_generated_images_do_not_depend_on_the_batch(generator, tiny_image_encoders, image_shape):
    values, base = torch.randn(3, *image_shape), torch.rand(3, *TARGET)
    for encoder in tiny_image_encoders.values():
        model = build(encoder, generator, ImageSpec(*image_shape))
        together = model(values, MASK, base)
        assert together.images.shape == (3, *TARGET) and together.losses == {}
        for row in range(3):
            one = slice(row, row + 1)
            alone = model(values[one], MASK[one], base[one])
            torch.testing.assert_close(alone.images[0], together.images[row])


@pytest.mark.parametrize("generator", GENERATORS)
def test_images_are_generated_from_videos(generator, tiny_image_encoders, image_shape):
    encoder = VideoEncoderConfig(
        image=tiny_image_encoders["vit-mean"], num_layers=1, num_heads=2, dropout=0.0
    )
    model = build(encoder, generator, VideoSpec(4, ImageSpec(*image_shape)))
    videos = torch.randn(3, 4, *image_shape)
    found = model(videos, MASK, torch.zeros(3, *TARGET)).images
    assert found.shape == (3, *TARGET)
    changed = videos.clone()
    changed[:, 0] += 1
    assert not torch.allclose(model(changed, MASK, torch.zeros(3, *TARGET)).images, found)


@pytest.mark.parametrize("of", ["summary", "states"])
def test_images_and_losses_depend_on_the_latents_only(of, tiny_image_encoders, image_shape):
    encoder = BottleneckEncoderConfig(
        encoder=tiny_image_encoders["resnet-small"],
        bottleneck=VariationalBottleneckConfig(dim=2),
        of=of,
    )
    model = build(encoder, "convolution", ImageSpec(*image_shape))
    values = torch.randn(3, *image_shape)
    found = model(values, MASK, torch.zeros(3, *TARGET))
    assert found.losses["kl"].shape == (3,)
    memory = model.encoder(values, MASK)
    assert memory.states.shape == (3, model.num_cells, 2)
    assert (model.layout is None) == (of == "summary")
    torch.testing.assert_close(model.generate(memory), found.images)


def test_residual_adds_the_source_to_the_output(tiny_image_encoders, image_shape):
    encoder = tiny_image_encoders["resnet-small"]
    values, base = torch.randn(3, *image_shape), torch.rand(3, *TARGET)
    plain = build(encoder, "convolution", ImageSpec(*image_shape))
    residual = build(encoder, "convolution", ImageSpec(*image_shape), is_residual=True)
    torch.testing.assert_close(
        residual(values, MASK, base).images, base + plain(values, MASK, base).images
    )


def test_building_does_not_update_batch_norms(tiny_image_encoders, image_shape):
    encoder = tiny_image_encoders["resnet-small"]
    model = ImageToImage(
        ImageToImageConfig(encoder=encoder), ImageSpec(*image_shape), ImageSpec(*TARGET)
    )
    assert model.training
    counts = [value for name, value in model.named_buffers() if name.endswith("tracked")]
    assert counts and not any(counts)


def test_deviation_must_be_above_zero():
    with pytest.raises(ConfigError, match="`deviation` must be above 0, but is 0"):
        ImageToImageConfig(deviation=0.0)
