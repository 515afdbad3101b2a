import re
import tomllib

import pytest
import torch

from regard.core.config import explain
from regard.core.errors import ConfigError
from regard.core.specs import AudioSpec, ImageSpec, TextImageSpec, TextSpec, VideoSpec
from regard.models.build import build_model
from regard.models.classifier import Classifier
from regard.models.encoders.bottleneck import BottleneckEncoderConfig
from regard.models.encoders.image import IMAGE_ENCODERS
from regard.models.encoders.tables import AUDIO_ENCODERS
from regard.models.encoders.text_image import TextImageEncoderConfig
from regard.models.encoders.video import VideoEncoderConfig
from regard.models.heads.copying import NoCopyingConfig
from regard.models.heads.regions import Grounder, PatchLabeller
from regard.models.image_to_image import ImageToImage
from regard.models.language_model import build_language_model
from regard.models.masked_lm import MaskedModel
from regard.runs.recipes import load_recipe, recipe_names, recipe_path
from regard.tasks.autoencoding.recipe import AutoencodingRecipe
from regard.tasks.base import Task
from regard.tasks.classification.recipe import ClassificationRecipe
from regard.tasks.denoising import DenoisingRecipe
from regard.tasks.generation.recipe import Recipe
from regard.tasks.image_to_image.recipe import ImageToImageRecipe
from regard.tasks.language_modeling import LanguageRecipe
from regard.tasks.masked_lm.recipe import MaskedRecipe
from regard.tasks.regions.recipe import GroundingRecipe, SegmentationRecipe
from regard.tasks.table import TASKS, recipe_class, task_class, to_recipe

PAPERS = ("bahdanau2015", "cho2014", "luong2015", "sutskever2014")


IMAGE = ImageSpec(3, 96, 96)


def source_spec(encoder):
    """Return the input specification of an encoder."""
    if isinstance(encoder, BottleneckEncoderConfig):
        return source_spec(encoder.encoder)
    if isinstance(encoder, TextImageEncoderConfig):
        return TextImageSpec(TextSpec(50), IMAGE)
    if type(encoder) in AUDIO_ENCODERS:
        return AudioSpec(40)
    if isinstance(encoder, VideoEncoderConfig):
        return VideoSpec(4, IMAGE)
    return IMAGE if type(encoder) in IMAGE_ENCODERS else TextSpec(50)


def build_pair_model(config):
    return build_model(config, source=source_spec(config.encoder), target_vocab_size=50)


BUILDERS = {
    Recipe: build_pair_model,
    DenoisingRecipe: build_pair_model,
    AutoencodingRecipe: build_pair_model,
    LanguageRecipe: lambda config: build_language_model(config, vocab_size=50),
    MaskedRecipe: lambda config: MaskedModel(config, 50),
    ClassificationRecipe: lambda config: Classifier(config, source_spec(config.encoder), 3),
    SegmentationRecipe: lambda config: PatchLabeller(config, ImageSpec(3, 64, 64), 6),
    GroundingRecipe: lambda config: Grounder(
        config, TextImageSpec(TextSpec(50), ImageSpec(3, 64, 64))
    ),
    ImageToImageRecipe: lambda config: ImageToImage(config, source_spec(config.encoder), IMAGE),
}


@pytest.fixture(params=recipe_names())
def name(request):
    return request.param


def test_every_paper_has_a_recipe_for_a_gpu_and_for_a_laptop():
    assert {*PAPERS, *(f"{paper}-laptop" for paper in PAPERS)} <= set(recipe_names())


def test_shipped_recipe_loads_and_its_model_can_be_built(name):
    recipe = load_recipe(name)
    with torch.device("meta"):
        model = BUILDERS[type(recipe)](recipe.model)
    assert sum(parameter.numel() for parameter in model.parameters()) > 1_000


def test_every_recipe_has_a_task_and_a_builder():
    recipes = {name: recipe_class(name) for name in TASKS}
    assert set(recipes.values()) == set(BUILDERS)
    for name, recipe in recipes.items():
        assert recipe().task == name
        assert issubclass(task_class(recipe()), Task)


def test_header_of_a_shipped_recipe_has_its_command(name):
    header = recipe_path(name).read_text(encoding="utf-8").split("\n\n")[0]
    assert re.search(rf"^#   regard train \S+ --recipe {name}( \S+=\S+)*$", header, re.MULTILINE)


def test_explained_recipe_loads_as_the_same_recipe(name):
    recipe = load_recipe(name)
    assert to_recipe(tomllib.loads(explain(recipe))) == recipe


def test_tied_embeddings_need_a_joint_vocabulary():
    with pytest.raises(
        ConfigError,
        match=r"`model\.ties` 'all' needs one joint vocabulary, but `data\.is_joint` is false\.",
    ):
        load_recipe("bahdanau2015-laptop", ["model.ties=all"])


def test_predicting_the_source_needs_a_joint_vocabulary():
    with pytest.raises(
        ConfigError, match=r"`model\.decoder\.source_weight` above 0 needs one joint vocabulary"
    ):
        load_recipe("prefix-lm", ["data.is_joint=false", "model.ties=output"])


def test_copying_needs_a_joint_vocabulary():
    with pytest.raises(
        ConfigError,
        match=r"^`model\.copying` needs one joint vocabulary, but `data\.is_joint` is false\. Set "
        r"`data\.is_joint` to true, or `model\.copying\.kind` to 'none'\.$",
    ):
        load_recipe("pointer-small", ["data.is_joint=false", "model.ties=output"])


def test_coverage_needs_teacher_forcing():
    with pytest.raises(
        ConfigError,
        match=r"`model\.copying\.coverage` above 0 needs `train\.teacher_forcing` 1.*is 0\.5",
    ):
        load_recipe("see2017", ["train.teacher_forcing=0.5"])


@pytest.mark.parametrize("kind", ["xu_soft", "xu_hard"])
def test_xu_decoders_need_teacher_forcing(kind):
    with pytest.raises(
        ConfigError,
        match=rf"`model\.decoder\.kind` '{kind}' needs `train\.teacher_forcing` 1.*is 0\.5",
    ):
        load_recipe("bahdanau2015", [f"model.decoder.kind={kind}", "train.teacher_forcing=0.5"])


@pytest.mark.parametrize("name", ["see2017", "pointer-small"])
def test_one_override_disables_copying(name):
    recipe = load_recipe(name, ["model.copying.kind=none"])
    assert recipe.model.copying == NoCopyingConfig()


def test_zero_validation_examples_are_refused():
    with pytest.raises(
        ConfigError, match=r"`validation\.max_examples` must be at least 1, but is 0\."
    ):
        load_recipe("cho2014", ["validation.max_examples=0"])


def test_windows_must_fit_learned_positions():
    with pytest.raises(
        ConfigError,
        match=r"`model\.max_length` must be at least `data\.window` \(64\) with learned positions, "
        r"but is 40\.",
    ):
        load_recipe("gpt-laptop", ["model.positions=learned", "model.max_length=40"])


def test_masked_texts_must_fit_learned_positions():
    with pytest.raises(
        ConfigError,
        match=r"`model\.encoder\.max_length` must be at least `data\.batch\.max_length` \(65\) "
        r"with learned positions, but is 64\.",
    ):
        load_recipe(
            "liu2019-laptop", ["model.encoder.positions=learned", "data.batch.max_length=65"]
        )
    load_recipe("liu2019-laptop", ["data.batch.max_length=65", "model.encoder.positions=rotary"])
