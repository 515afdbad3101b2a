import json

import pytest
import torch

from regard.core.errors import ConfigError, ExportError
from regard.core.files import write_json
from regard.data.image.field import ImageConfig, ImageField
from regard.data.labels import LabelField
from regard.interop.huggingface.export import find_layout
from regard.interop.huggingface.load import LAYOUTS, import_folder
from regard.interop.huggingface.weights import write_tensors
from regard.models.classifier import ClassifierConfig
from regard.models.encoders.resnet import ResnetEncoderConfig
from regard.models.encoders.vit import VitEncoderConfig
from regard.tasks.classification.recipe import ClassificationDataConfig, ClassificationRecipe
from regard.tasks.classification.task import ClassificationTask

SIZES = {"dim": 8, "num_layers": 1, "num_heads": 2, "feed_forward_dim": 12, "patch": 4}


def build(encoder=None, fit="crop", **changes):
    image = ImageConfig(size=8, fit=fit)
    model = ClassifierConfig(
        encoder=encoder or VitEncoderConfig(**SIZES), **{"pooling": "summary", **changes}
    )
    return ClassificationTask.from_scratch(
        ClassificationRecipe(model=model, data=ClassificationDataConfig(source=image)),
        {
            "source": ImageField(image, (0.1, 0.2, 0.3), (0.4, 0.5, 0.6)),
            "labels": LabelField(["ship", "tree"]),
        },
        device=torch.device("cpu"),
    )


@pytest.fixture
def folder(tmp_path):
    """A ViT folder written without `transformers`."""
    task, layout, path = build(), LAYOUTS["vit"], tmp_path / "hf"
    path.mkdir()
    config = layout.to_config(task)
    write_json(path / "config.json", config)
    write_tensors(path, layout.export_weights(task, config))
    layout.write_vocabularies(task, path)
    return path


def change(path, **values):
    before = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**before, **values}), encoding="utf-8")


def test_exported_model_is_imported_equal(folder, tmp_path):
    task, back = build(), import_folder(folder, tmp_path / "run").task
    assert back.labels.names == ("ship", "tree")
    assert (back.source.mean, back.source.std) == (task.source.mean, task.source.std)
    assert back.source.config == task.source.config
    values, mask = torch.randn(2, 3, 8, 8), torch.ones(2, 1).bool()
    assert torch.equal(back.model(values, mask), task.model(values, mask))


def test_without_normalisation_mean_is_0_and_std_is_1(folder, tmp_path):
    change(folder / "preprocessor_config.json", do_normalize=False)
    source = import_folder(folder, tmp_path / "run").task.source
    assert (source.mean, source.std) == ((0, 0, 0), (1, 1, 1))


def test_default_preprocessor_is_that_of_the_paper(folder, tmp_path, logged):
    (folder / "preprocessor_config.json").unlink()
    source = import_folder(folder, tmp_path / "run").task.source
    assert source.mean == source.std == (0.5, 0.5, 0.5)
    assert source.config.fit == "squash"
    assert "Images are resized with `resample` 2 in the checkpoint and 3 here" in logged.text


def test_image_must_be_a_square(folder, tmp_path):
    change(folder / "config.json", image_size=[8, 12])
    with pytest.raises(ConfigError, match=r"^`image_size` must be a square's, but is 8 x 12\.$"):
        import_folder(folder, tmp_path / "run")


def test_all_unsupported_options_are_listed_at_once(folder, tmp_path):
    change(folder / "config.json", hidden_act="relu", qkv_bias=False, num_channels=4)
    with pytest.raises(
        ConfigError,
        match=r"^This 'vit' model cannot be imported: `hidden_act` must be 'gelu', but is 'relu'; "
        r"`qkv_bias` must be true, but is false; `num_channels` must be 3 or 1, but is 4\.$",
    ):
        import_folder(folder, tmp_path / "run")


def test_all_unsupported_settings_of_a_run_are_listed_at_once():
    encoder = VitEncoderConfig(**SIZES, summary="mean", positions="sincos2d", is_norm_first=False)
    with pytest.raises(
        ExportError,
        match=r"^Cannot export: the run does not fit 'vit': .*`model\.encoder\.is_norm_first` must "
        r"be true, but is false; .*`model\.encoder\.positions` must be 'learned', but is "
        r"'sincos2d'; `model\.encoder\.summary` must be 'class', but is 'mean'; `model\.pooling` "
        r"must be 'summary', but is 'max'; `model\.has_hidden` must be false, but is true; "
        r"`data\.source\.fit` must be 'squash' or 'crop', but is 'pad'\.$",
    ):
        find_layout(build(encoder, fit="pad", pooling="max", has_hidden=True))


def test_residual_network_is_not_supported():
    match = r"'vit': `model\.encoder\.kind` must be 'vit', but is 'resnet'\.$"
    with pytest.raises(ExportError, match=match):
        find_layout(build(ResnetEncoderConfig(widths=(4,), blocks=(1,))))
