"""Hugging Face folders of strangers: every damage and every changed option is one message."""

import json
import shutil

import pytest
import torch

from regard.core.files import write_json
from regard.data.batching import BatchConfig
from regard.data.text.tokenizers import TokenizerConfig
from regard.data.text.vocabulary import train_tokenizer
from regard.interop.huggingface.load import LAYOUTS
from regard.interop.huggingface.weights import write_tensors
from regard.models.encoders.bert import BertEncoderConfig
from regard.models.masked_lm import MaskedModelConfig
from regard.tasks.masked_lm.recipe import MaskedDataConfig, MaskedRecipe
from regard.tasks.masked_lm.task import MaskedLmTask, text_fields
from tests.faults.attack import (
    FILE_DAMAGES,
    JSON_DAMAGES,
    changed,
    changes_of,
    collect,
    damages_of,
    read_json,
    write_value,
)

FILES = ("config.json", "model.safetensors", "tokenizer.json")


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """A BERT folder, written without `transformers`, with an image preprocessor to be ignored."""
    folder = tmp_path_factory.mktemp("clean") / "bert"
    folder.mkdir()
    encoder = BertEncoderConfig(dim=8, num_layers=1, num_heads=2, feed_forward_dim=12, max_length=9)
    recipe = MaskedRecipe(
        data=MaskedDataConfig(batch=BatchConfig(max_length=9)),
        model=MaskedModelConfig(encoder=encoder),
    )
    config = TokenizerConfig(kind="char", extra_tokens=("<mask>",))
    fields = text_fields(train_tokenizer(config, ["abc cab"]))
    task = MaskedLmTask.from_scratch(recipe, fields, device=torch.device("cpu"))
    layout = LAYOUTS["bert"]
    options = layout.defaults | layout.to_config(task)
    write_json(folder / "config.json", options)
    write_tensors(folder, layout.export_weights(task, options))
    layout.write_vocabularies(task, folder)
    return folder


@pytest.fixture(scope="module")
def attempt(commands, tmp_path_factory):
    """Function from a name, `import`, and a folder to what is wrong with the outcome."""
    out = tmp_path_factory.mktemp("out") / "run"

    def run(name, folder):
        return commands(name, "hf", folder, "--out", out, "--force").fault

    return run


def test_untouched_checkpoint_is_imported(commands, clean, tmp_path):
    assert commands("import", "hf", clean, "--out", tmp_path / "run").code == 0


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["folder", "pipe", "device", "link out", "enormous", "missing"])
def test_damaged_file_is_one_message(attempt, altered, name, damage):
    folder = altered(lambda folder: FILE_DAMAGES[damage](folder / name))
    assert attempt("import", folder) == ""


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
@pytest.mark.parametrize("damage", JSON_DAMAGES)
def test_wrong_json_is_one_message(attempt, altered, name, damage):
    folder = altered(lambda folder: JSON_DAMAGES[damage](folder / name))
    assert attempt("import", folder) == ""


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("vocab_size", 10**9), ("vocab_size", "many"), ("hidden_size", 20_000),
        ("hidden_size", 10**12), ("num_hidden_layers", 10**9), ("pad_token_id", -5),
        ("max_position_embeddings", 10**9), ("type_vocab_size", 10**9), ("model_type", ["bert"]),
        ("num_attention_heads", 0), ("layer_norm_eps", float("nan")),
    ],
)  # fmt: skip
def test_option_that_does_not_fit_the_weights_is_one_message(
    commands, clean, altered, tmp_path, option, value
):
    config = changed(read_json(clean / "config.json"), (option,), value)
    folder = altered(write_value("config.json", config))
    outcome = commands("import", "hf", folder, "--out", tmp_path / "run")
    assert outcome.fault == ""
    assert outcome.code == 2
    assert not (tmp_path / "run").exists()


def test_link_into_the_cache_of_hugging_face_is_followed(commands, clean, tmp_path):
    cache = tmp_path / "models--a--b"
    snapshot = cache / "snapshots" / "1"
    snapshot.mkdir(parents=True)
    shutil.copytree(clean, cache / "blobs")
    for path in (cache / "blobs").iterdir():
        (snapshot / path.name).symlink_to(f"../../blobs/{path.name}")
    assert commands("import", "hf", snapshot, "--out", tmp_path / "run").code == 0


@pytest.mark.parametrize(
    "index",
    [
        [], {}, {"weight_map": []}, {"weight_map": {"a": 1}}, {"weight_map": {"a": "../b"}},
        {"weight_map": {"a": "/etc/passwd"}}, {"weight_map": {"a": "missing"}},
        {"weight_map": {"a": "b\0"}}, {"weight_map": {"a": "x" * 1000}},
    ],
)  # fmt: skip
def test_index_of_other_files_is_one_message(attempt, altered, index):
    def change(folder):
        (folder / "model.safetensors").unlink()
        (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")

    assert attempt("import", altered(change)) == ""


@pytest.mark.faults
@pytest.mark.parametrize("name", FILES)
def test_every_damage_of_every_file(attempt, altered, name):
    cases = damages_of(name, is_json=name != "model.safetensors")
    assert collect(cases, attempt, altered, ["import"]) == {}


@pytest.mark.faults
@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json"])
def test_every_change_of_every_option(attempt, clean, altered, name):
    cases = changes_of(name, read_json(clean / name), limit=80)
    assert collect(cases, attempt, altered, ["import"]) == {}
