import sys

import pytest
import torch

from regard.core.errors import ExportError
from regard.data.batching import BatchConfig
from regard.data.text.field import both_sides
from regard.data.text.tokenizers import TokenizerConfig
from regard.data.text.vocabulary import train_tokenizer
from regard.interop.huggingface import export as exporting
from regard.interop.huggingface.export import export_run, find_layout
from regard.interop.huggingface.load import import_folder
from regard.models.build import ModelConfig
from regard.models.decoders import TransformerDecoderConfig
from regard.models.encoders.bert import BertEncoderConfig
from regard.models.encoders.transformer import TransformerEncoderConfig
from regard.models.heads.copying import PointerConfig
from regard.models.masked_lm import MaskedModelConfig
from regard.runs.folder import initialize_folder
from regard.tasks.generation.recipe import DataConfig, Recipe
from regard.tasks.generation.task import Predictor
from regard.tasks.language_modeling import LanguageRecipe
from regard.tasks.masked_lm.recipe import MaskedDataConfig, MaskedRecipe
from regard.tasks.masked_lm.task import MaskedLmTask, text_fields
from regard.training.checkpoint import save_weights

TINY = {"num_layers": 1, "num_heads": 2, "feed_forward_dim": 12}


@pytest.fixture
def save(masked_task, tmp_path):
    """Function that saves a run of a tiny model."""

    def save_run(**changes):
        task = masked_task(**changes)
        initialize_folder(tmp_path / "run", task, {})
        save_weights(task.model, tmp_path / "run" / "model.safetensors")
        return task

    return save_run


@pytest.fixture
def without_transformers(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)


@pytest.mark.parametrize(
    ("settings", "layout"),
    [
        ({}, "bert"),
        ({"num_segments": 0}, "bert"),
        ({"num_segments": 1}, "bert"),
        ({"norm_epsilon": 1e-12}, "bert"),
    ],
)
def test_exported_run_is_imported_equal(save, tmp_path, without_transformers, settings, layout):
    task = save(**settings)
    exported = export_run(tmp_path / "run", tmp_path / "out")
    assert (exported.model_type, exported.difference) == (layout, None)
    back = import_folder(tmp_path / "out", tmp_path / "back").task
    ids = torch.tensor([[2, 5, 3, 6, 3]])
    mask = torch.ones_like(ids, dtype=torch.bool)
    assert torch.allclose(back.model(ids, mask), task.model(ids, mask), atol=1e-6)
    assert back.tokenizer.encode("abc x") == task.tokenizer.encode("abc x")


def test_parts_without_a_name_in_the_layout_are_left_out_and_named(tmp_path, without_transformers):
    encoder = BertEncoderConfig(dim=8, max_length=9, **TINY)
    recipe = MaskedRecipe(
        model=MaskedModelConfig(encoder=encoder, next_sentence=1.0),
        data=MaskedDataConfig(packing="pairs", batch=BatchConfig(max_length=9)),
    )
    config = TokenizerConfig(kind="char", extra_tokens=("<mask>",))
    tokenizer = train_tokenizer(config, ["abc"])
    task = MaskedLmTask.from_scratch(recipe, text_fields(tokenizer), device=torch.device("cpu"))
    initialize_folder(tmp_path / "run", task, {})
    save_weights(task.model, tmp_path / "run" / "model.safetensors")
    assert export_run(tmp_path / "run", tmp_path / "out").left_out == ("next_sentence",)
    assert import_folder(tmp_path / "out", tmp_path / "back").notes == []


@pytest.mark.parametrize("preferred", ["bert", "roberta", "distilbert"])
def test_layout_of_the_imported_checkpoint_is_preferred(masked_task, preferred):
    task = masked_task(num_segments=0, norm_epsilon=1e-12)
    assert find_layout(task, preferred).model_type == preferred


def test_all_unsupported_settings_are_listed_at_once(save, tmp_path):
    save(positions="rotary", is_norm_first=True, feed_forward="gated", num_key_heads=1)
    with pytest.raises(
        ExportError,
        match=(
            r"^Cannot export: the run does not fit 'bert': `model\.encoder\.num_key_heads` must be "
            r"0, but is 1; `model\.encoder\.feed_forward` must be 'gelu', but is 'gated'; "
            r"`model\.encoder\.is_norm_first` must be false, but is true; "
            r"`model\.encoder\.positions` must be 'learned', but is 'rotary'\.$"
        ),
    ):
        export_run(tmp_path / "run", tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {"run"}


def translator(**settings):
    tokenizer = train_tokenizer(TokenizerConfig(kind="char"), ["abc"])
    recipe = Recipe(model=ModelConfig(**settings), data=DataConfig(is_joint=True))
    return Predictor.from_scratch(recipe, {**both_sides(tokenizer)}, device=torch.device("cpu"))


def test_recurrent_translator_is_not_supported():
    match = r"'marian': `model\.encoder\.kind` must be 'transformer', but is 'rnn'; `model\.decoder"
    with pytest.raises(ExportError, match=match):
        find_layout(translator())


def test_transformer_with_other_settings_is_not_supported():
    task = translator(
        encoder=TransformerEncoderConfig(dim=8, positions="rotary", **TINY),
        decoder=TransformerDecoderConfig(dim=4, feed_forward="gelu", **TINY),
    )
    with pytest.raises(
        ExportError,
        match=(
            r"'marian': `model\.encoder\.positions` must be 'sinusoidal_halves', but is "
            r"'rotary'; `model\.decoder\.feed_forward` must be 'relu', but is 'gelu'; "
            r"`model\.decoder\.positions` must be .+; `model\.decoder\.dim` must be the encoder's "
            r"\(8\), but is 4; `model\.ties` must be 'output' or 'all', but is 'none'\.$"
        ),
    ):
        find_layout(task)


def test_transformer_with_the_settings_of_marian_is_supported():
    sides = {"dim": 8, "positions": "sinusoidal_halves", "feed_forward": "silu", **TINY}
    task = translator(
        encoder=TransformerEncoderConfig(**sides),
        decoder=TransformerDecoderConfig(**sides),
        ties="output",
    )
    assert find_layout(task).model_type == "marian"


def test_both_sides_must_have_the_same_positions():
    task = translator(
        encoder=TransformerEncoderConfig(dim=8, **TINY),
        decoder=TransformerDecoderConfig(dim=8, positions="sinusoidal_halves", **TINY),
        ties="all",
    )
    match = r"`model\.decoder\.positions` must be 'sinusoidal', but is 'sinusoidal_halves'\.$"
    with pytest.raises(ExportError, match=match):
        find_layout(task)


@pytest.mark.parametrize("dim", [6, 8])
def test_interleaved_positions_are_exported_with_other_columns(dim, tmp_path):
    pytest.importorskip("transformers", reason="transformers is not installed")
    task = translator(
        encoder=TransformerEncoderConfig(dim=dim, **TINY),
        decoder=TransformerDecoderConfig(dim=dim, **TINY),
        ties="all",
    )
    with torch.no_grad():
        for parameter in task.model.parameters():
            parameter.normal_()
    initialize_folder(tmp_path / "run", task, {})
    save_weights(task.model, tmp_path / "run" / "model.safetensors")
    assert export_run(tmp_path / "run", tmp_path / "out").difference < 1e-4


def test_transformer_with_copying_is_not_supported():
    sides = {"dim": 8, "positions": "sinusoidal_halves", **TINY}
    task = translator(
        encoder=TransformerEncoderConfig(**sides),
        decoder=TransformerDecoderConfig(**sides),
        copying=PointerConfig(dim=8),
        ties="output",
    )
    match = r"'marian': .*`model\.copying\.kind` must be 'none', but is 'pointer'"
    with pytest.raises(ExportError, match=match):
        find_layout(task)


def test_task_without_a_layout_is_refused(masked_task):
    task = masked_task()
    task.recipe = LanguageRecipe()
    with pytest.raises(ExportError, match="^Cannot export a run whose task is 'language_model'"):
        find_layout(task)


def test_model_with_other_logits_than_transformers_is_not_written(save, tmp_path, monkeypatch):
    pytest.importorskip("transformers", reason="transformers is not installed")
    save()
    layout = exporting.LAYOUTS["bert"]
    right = type(layout).export_weights

    def wrong(self, task, config):
        weights = right(self, task, config)
        bias = "cls.predictions.bias"
        return {**weights, bias: weights[bias] + 1}

    monkeypatch.setattr(type(layout), "export_weights", wrong)
    with pytest.raises(ExportError, match=r"differ from those of the run by up to 1\."):
        export_run(tmp_path / "run", tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {"run"}
