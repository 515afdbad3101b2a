"""Fine-tuning from the image encoder of another run: captions, questions, classification."""

import pytest
import torch

from regard.core.errors import ConfigError
from regard.data.datasets.catalog import find_data
from regard.data.image.field import ImageConfig, ImageField
from regard.models.encoders.bottleneck import BottleneckEncoderConfig
from regard.models.encoders.resnet import ResnetEncoderConfig
from regard.models.generators import ConvolutionGeneratorConfig
from regard.models.image_to_image import ImageToImageConfig
from regard.runs.recipes import load_recipe
from regard.tasks.classification.task import ClassificationTask
from regard.tasks.generation.task import Predictor
from regard.tasks.image_to_image.recipe import ImageToImageDataConfig, ImageToImageRecipe
from regard.tasks.image_to_image.task import ImageToImageTask

CPU = torch.device("cpu")
RESNET = ("model.encoder.widths=[4,8]", "model.encoder.blocks=[1,1]")
VIT = (
    "model.encoder.positions=learned",
    "model.encoder.dim=8",
    "model.encoder.num_heads=2",
    "model.encoder.num_layers=1",
    "model.encoder.feed_forward_dim=8",
)


@pytest.fixture(scope="module")
def shapes():
    return find_data("shapes:20").train


@pytest.fixture(scope="module")
def scenes():
    return find_data("scenes:20").train


def classifier(recipe, shapes, *overrides):
    settings = load_recipe(recipe, ("data.source.size=16", *overrides))
    return ClassificationTask.prepare(settings, shapes, device=CPU)


def fine_tune(start, scenes, *overrides):
    small = (
        "model.decoder.dim=8",
        "model.decoder.embedding_dim=8",
        "model.decoder.attention_dim=8",
    )
    recipe = load_recipe("xu2015", ("data.source.size=32", *small, *overrides))
    return Predictor.prepare(recipe, scenes, device=CPU, init_from=start)


def test_captioner_has_the_encoder_weights_and_image_statistics_of_a_classifier(shapes, scenes):
    start = classifier("he2016", shapes, *RESNET)
    tuned = fine_tune(start, scenes)
    assert isinstance(tuned.source, ImageField)
    assert tuned.source.spec.shape == (3, 32, 32)
    assert tuned.source.config == tuned.recipe.data.source
    assert (tuned.source.mean, tuned.source.std) == (start.source.mean, start.source.std)
    weights = start.model.encoder.state_dict()
    for name, tensor in tuned.model.encoder.state_dict().items():
        assert torch.equal(tensor, weights[name])


def test_other_number_of_channels_is_refused(shapes, scenes):
    start = classifier("he2016", shapes, *RESNET, "data.source.channels=1")
    with pytest.raises(ConfigError, match=r"`data.source.channels` must be .*\(1\), but is 3"):
        fine_tune(start, scenes)


def test_other_image_size_is_refused_with_learned_positions(shapes, scenes):
    start = classifier("dosovitskiy2021", shapes, *VIT)
    with pytest.raises(ConfigError, match=r"`data.source.size` must be .*\(16\), but is 32"):
        fine_tune(start, scenes)


@pytest.mark.parametrize("recipe", ["he2016", "xu2015"])
def test_bottleneck_of_an_autoencoder_is_dropped(recipe, shapes, scenes):
    autoencoder = ImageToImageRecipe(
        data=ImageToImageDataConfig(source=ImageConfig(size=16), target=ImageConfig(size=16)),
        model=ImageToImageConfig(
            encoder=BottleneckEncoderConfig(
                encoder=ResnetEncoderConfig(widths=(4, 8), blocks=(1, 1))
            ),
            generator=ConvolutionGeneratorConfig(widths=(4,), blocks=(1,)),
        ),
    )
    start = ImageToImageTask.prepare(autoencoder, shapes, device=CPU)
    if recipe == "he2016":
        settings = load_recipe(recipe, ("data.source.size=32",))
        tuned = ClassificationTask.prepare(settings, shapes, device=CPU, init_from=start)
    else:
        tuned = fine_tune(start, scenes)
    assert tuned.recipe.model.encoder == autoencoder.model.encoder.encoder
    weights = start.model.encoder.encoder.state_dict()
    for name, tensor in tuned.model.encoder.state_dict().items():
        assert torch.equal(tensor, weights[name])
    assert (tuned.source.mean, tuned.source.spec.shape) == (start.source.mean, (3, 32, 32))


JOINED = (
    "data.source.image.size=32",
    "model.encoder.text.dim=8",
    "model.encoder.num_heads=2",
    "model.encoder.text.num_heads=2",
)


def answer_questions(start, *overrides):
    recipe = load_recipe("scenes-questions-laptop", (*JOINED, *overrides))
    questions = find_data("scenes:questions,20").train
    return ClassificationTask.prepare(recipe, questions, device=CPU, init_from=start)


def test_question_answering_has_the_image_encoder_of_a_captioner(shapes, scenes):
    captioner = fine_tune(classifier("he2016", shapes, *RESNET), scenes)
    tuned = answer_questions(captioner)
    assert tuned.recipe.model.encoder.image == captioner.recipe.model.encoder
    assert tuned.recipe.model.encoder.text.dim == 8
    image = torch.rand(1, 3, 32, 32)
    mask = torch.ones(1, 1, dtype=torch.bool)
    with torch.no_grad():
        states = tuned.model.encoder.image(image, mask).states
        expected = captioner.model.encoder(image, mask).states
    assert torch.equal(states, expected)
    assert tuned.source.image.mean == captioner.source.mean
    assert not tuned.source.text.tokenizer.unknown("how many circles are there")


def test_text_encoder_is_refused(tiny_run):
    with pytest.raises(ConfigError, match="`init_from` must be a run that reads images"):
        answer_questions(tiny_run.predictor)
