"""Claims about every language model, over every row of the table and its settings."""

import json

import pytest
import torch

from regard.attention.multihead import MultiHeadAttention
from regard.attention.positions import POSITIONS
from regard.core.config import from_dict, to_dict
from regard.models.language_model import (
    LANGUAGE_MODELS,
    RnnLanguageConfig,
    TransformerLanguageConfig,
    build_language_model,
)
from regard.tasks.language_modeling import LanguageDataConfig, LanguageRecipe
from regard.training.checkpoint import load_weights, save_weights
from tests.all_pairs import Matrix, variants

SIZES = {"dim": 8, "num_layers": 2, "num_heads": 2, "feed_forward_dim": 6, "dropout": 0.0}
MODELS = Matrix(
    "trained language models",
    config=variants(
        TransformerLanguageConfig,
        positions=POSITIONS.keys(),
        window=(0, 4),
        is_tied=(False, True),
        sizes={"max_length": 9, **SIZES},
    )
    | variants(
        RnnLanguageConfig,
        cell=("vanilla", "gru", "lstm"),
        is_tied=(False, True),
        sizes={"embedding_dim": 6, "dim": 6},
    ),
    is_mixed={"full": False, "mixed": True},
)
pytestmark = pytest.mark.matrix("config, is_mixed", MODELS)


@pytest.fixture
def model(config):
    torch.manual_seed(0)
    return build_language_model(config, vocab_size=11)


@pytest.fixture
def tokens():
    return torch.randint(11, (3, 9), generator=torch.Generator().manual_seed(1))


def loss_of(model, tokens):
    logits = model(tokens[:, :-1]).logits
    assert logits.shape == (3, 8, 11)
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())


def test_every_row_of_the_table_is_tested():
    configs = [MODELS.values(row)["config"] for row in MODELS.selected]
    assert {type(config) for config in configs} == set(LANGUAGE_MODELS)


def test_every_parameter_has_a_gradient(model, tokens, is_mixed):
    with torch.autocast("cpu", torch.bfloat16, enabled=is_mixed):
        loss_of(model.train(), tokens).backward()
    # Biases of keys add the same to all scores of a query, which a softmax ignores.
    without = {
        f"{name}.key_map.bias"
        for name, module in model.named_modules()
        if isinstance(module, MultiHeadAttention)
    }
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0 or name in without, name


def test_settings_as_json_load_back_to_equal_settings(config):
    recipe = LanguageRecipe(data=LanguageDataConfig(window=9), model=config)
    assert from_dict(LanguageRecipe, json.loads(json.dumps(to_dict(recipe)))) == recipe


def test_saved_and_loaded_equals_the_original(config, model, tokens, tmp_path):
    torch.manual_seed(1)
    other = build_language_model(config, vocab_size=11)
    save_weights(model, tmp_path / "model.safetensors")
    load_weights(other, tmp_path / "model.safetensors")
    assert (other.output.weight is other.embedding.weight) == config.is_tied
    with torch.no_grad():
        assert torch.equal(other.eval()(tokens).logits, model.eval()(tokens).logits)
