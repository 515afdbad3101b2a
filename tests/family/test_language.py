"""Properties of every language model, for every entry of the table and its options."""

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

SIZES = {"dim": 8, "num_layers": 2, "num_heads": 2, "feed_forward_dim": 6, "dropout": 0.0}
CONFIGS = {
    f"{positions}-{window}-{'tied' if is_tied else 'untied'}": TransformerLanguageConfig(
        positions=positions, window=window, is_tied=is_tied, max_length=9, **SIZES
    )
    for positions in POSITIONS
    for window, is_tied in ((0, True), (4, False))
} | {
    f"{cell}-{'tied' if is_tied else 'untied'}": RnnLanguageConfig(
        cell=cell, embedding_dim=6 if is_tied else 5, dim=6, is_tied=is_tied
    )
    for cell in ("vanilla", "gru", "lstm")
    for is_tied in (True, False)
}


@pytest.fixture(params=CONFIGS.values(), ids=CONFIGS)
def config(request):
    return request.param


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


def test_every_entry_of_the_table_is_tested():
    assert {type(config) for config in CONFIGS.values()} == set(LANGUAGE_MODELS)


@pytest.mark.parametrize("is_mixed", [False, True], ids=["full", "mixed"])
def test_every_parameter_gets_a_gradient(model, tokens, is_mixed):
    with torch.autocast("cpu", torch.bfloat16, enabled=is_mixed):
        loss_of(model.train(), tokens).backward()
    # Key biases add a constant to all scores of a query, so their gradient is zero.
    zero_gradient = {
        f"{name}.key_map.bias"
        for name, module in model.named_modules()
        if isinstance(module, MultiHeadAttention)
    }
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0 or name in zero_gradient, name


def test_settings_round_trip(config):
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
