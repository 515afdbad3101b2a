import json
import logging

import pytest
import torch
from safetensors.torch import load_file, save_file

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

CPU = torch.device("cpu")


@pytest.fixture
def masked_task():
    """Builder of a tiny masked language model; its arguments change the encoder's settings."""

    def build(**changes):
        sizes = {"dim": 8, "num_layers": 1, "num_heads": 2, "feed_forward_dim": 12}
        encoder = BertEncoderConfig(**{**sizes, "max_length": 9, **changes})
        data = MaskedDataConfig(batch=BatchConfig(max_length=encoder.max_length))
        config = TokenizerConfig(kind="char", extra_tokens=("<mask>",))
        return MaskedLmTask.from_scratch(
            MaskedRecipe(data=data, model=MaskedModelConfig(encoder=encoder)),
            text_fields(train_tokenizer(config, ["abc cab"])),
            device=CPU,
        )

    return build


class Folder:
    """A Hugging Face folder that can be damaged."""

    def __init__(self, path):
        self.path = path

    def configure(self, **changes):
        path = self.path / "config.json"
        values = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps({**values, **changes}), encoding="utf-8")

    def change(self, change):
        """Apply a function to the dictionary of weights."""
        path = self.path / "model.safetensors"
        tensors = load_file(path)
        change(tensors)
        save_file(tensors, path, {"format": "pt"})


@pytest.fixture
def folder(masked_task, tmp_path):
    """A BERT folder written without `transformers`."""
    task, layout, path = masked_task(), LAYOUTS["bert"], tmp_path / "bert"
    path.mkdir()
    config = layout.to_config(task)
    write_json(path / "config.json", config)
    write_tensors(path, layout.export_weights(task, config))
    layout.write_vocabularies(task, path)
    return Folder(path)


@pytest.fixture
def logged(caplog):
    caplog.set_level(logging.INFO, logger="regard")
    return caplog
