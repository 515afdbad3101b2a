"""Captions that begin with the eyes of a classifier, and questions with those of a captioner."""

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


def classifier(recipe, shapes, *words):
    settings = load_recipe(recipe, ("data.source.size=16", *words))
    return ClassificationTask.prepare(settings, shapes, device=CPU)


def begin(start, scenes, *words):
    small = (
        "model.decoder.dim=8",
        "model.decoder.embedding_dim=8",
        "model.decoder.attention_dim=8",
    )
    recipe = load_recipe("xu2015", ("data.source.size=32", *small, *words))
    return Predictor.prepare(recipe, scenes, device=CPU, init_from=start)


def test_eyes_take_weights_along_and_leave_the_size_of_images_behind(shapes, scenes):
    start = classifier("he2016", shapes, *RESNET)
    begun = begin(start, scenes)
    assert isinstance(begun.source, ImageField)
    assert begun.source.spec.shape == (3, 32, 32)
    assert begun.source.config == begun.recipe.data.source
    assert (begun.source.mean, begun.source.std) == (start.source.mean, start.source.std)
    weights = start.model.encoder.state_dict()
    for name, tensor in begun.model.encoder.state_dict().items():
        assert torch.equal(tensor, weights[name])


def test_eyes_for_grey_do_not_see_colour(shapes, scenes):
    start = classifier("he2016", shapes, *RESNET, "data.source.channels=1")
    with pytest.raises(ConfigError, match=r"`data.source.channels` must be .*\(1\), but is 3"):
        begin(start, scenes)


def test_eyes_that_know_patches_by_their_place_keep_the_size(shapes, scenes):
    start = classifier("dosovitskiy2021", shapes, *VIT)
    with pytest.raises(ConfigError, match=r"`data.source.size` must be .*\(16\), but is 32"):
        begin(start, scenes)


@pytest.mark.parametrize("recipe", ["he2016", "xu2015"])
def test_eyes_of_an_autoencoder_come_without_its_bottleneck(recipe, shapes, scenes):
    narrow = ImageToImageRecipe(
        data=ImageToImageDataConfig(source=ImageConfig(size=16), target=ImageConfig(size=16)),
        model=ImageToImageConfig(
            encoder=BottleneckEncoderConfig(
                encoder=ResnetEncoderConfig(widths=(4, 8), blocks=(1, 1))
            ),
            generator=ConvolutionGeneratorConfig(widths=(4,), blocks=(1,)),
        ),
    )
    start = ImageToImageTask.prepare(narrow, shapes, device=CPU)
    if recipe == "he2016":
        asked = load_recipe(recipe, ("data.source.size=32",))
        begun = ClassificationTask.prepare(asked, shapes, device=CPU, init_from=start)
    else:
        begun = begin(start, scenes)
    assert begun.recipe.model.encoder == narrow.model.encoder.encoder
    weights = start.model.encoder.encoder.state_dict()
    for name, tensor in begun.model.encoder.state_dict().items():
        assert torch.equal(tensor, weights[name])
    assert (begun.source.mean, begun.source.spec.shape) == (start.source.mean, (3, 32, 32))


JOINED = (
    "data.source.image.size=32",
    "model.encoder.text.dim=8",
    "model.encoder.num_heads=2",
    "model.encoder.text.num_heads=2",
)


def ask(start, *words):
    recipe = load_recipe("scenes-questions-laptop", (*JOINED, *words))
    questions = find_data("scenes:questions,20").train
    return ClassificationTask.prepare(recipe, questions, device=CPU, init_from=start)


def test_questions_begin_with_the_eyes_of_a_captioner(shapes, scenes):
    captioner = begin(classifier("he2016", shapes, *RESNET), scenes)
    begun = ask(captioner)
    assert begun.recipe.model.encoder.image == captioner.recipe.model.encoder
    assert begun.recipe.model.encoder.text.dim == 8
    image = torch.rand(1, 3, 32, 32)
    mask = torch.ones(1, 1, dtype=torch.bool)
    with torch.no_grad():
        ours = begun.model.encoder.image(image, mask).states
        theirs = captioner.model.encoder(image, mask).states
    assert torch.equal(ours, theirs)
    assert begun.source.image.mean == captioner.source.mean
    assert not begun.source.text.tokenizer.unknown("how many circles are there")


def test_questions_do_not_begin_with_what_reads_text(tiny_run):
    with pytest.raises(ConfigError, match="`init_from` must be a run that reads images"):
        ask(tiny_run.predictor)
