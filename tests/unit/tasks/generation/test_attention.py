import math

import pytest
import torch

from regard.data.example import Example
from regard.data.text.field import both_sides
from regard.data.text.tokenizers import TokenizerConfig
from regard.data.text.vocabulary import train_tokenizer
from regard.models.build import ModelConfig
from regard.models.decoders import TransformerDecoderConfig
from regard.models.encoders.transformer import TransformerEncoderConfig
from regard.models.ensemble import Ensemble
from regard.models.heads.copying import PointerConfig
from regard.tasks.generation.recipe import DataConfig, Recipe
from regard.tasks.generation.task import Predictor

SIZES = {"dim": 8, "num_layers": 2, "num_heads": 2, "feed_forward_dim": 5}
EXAMPLES = [Example("a b b a", "b a a"), Example("c a b", "c")]


@pytest.fixture
def predictor():
    """A transformer with a copying head."""
    tokenizer = train_tokenizer(TokenizerConfig(kind="word"), ["a b c"])
    model = ModelConfig(
        encoder=TransformerEncoderConfig(**SIZES),
        decoder=TransformerDecoderConfig(**SIZES),
        copying=PointerConfig(dim=4, coverage=1.0),
    )
    recipe = Recipe(model=model, data=DataConfig(is_joint=True))
    return Predictor.from_scratch(recipe, {**both_sides(tokenizer)}, device=torch.device("cpu"))


def open_gate(predictor, value):
    gate = predictor.model.decoder.copying.gate
    with torch.no_grad():
        gate.weight.zero_()
        gate.bias.fill_(value)


def test_rows_of_a_map_sum_to_the_probability_of_copying(predictor):
    open_gate(predictor, math.log(3))
    long, short = predictor.attend(EXAMPLES)
    assert (long.weights.shape, short.weights.shape) == ((1, 1, 4, 5), (1, 1, 2, 4))
    for found in (long, short):
        assert found.kind == "copying"
        assert torch.allclose(found.mean().sum(1), torch.full((len(found.target),), 0.25))


def test_map_of_pure_copying_is_the_probability_of_the_target(predictor):
    open_gate(predictor, -60.0)
    (found,) = predictor.attend(EXAMPLES[:1])
    (scored,) = predictor.score(EXAMPLES[:1])
    for row, target in enumerate(found.target[:-1]):
        columns = [column for column, token in enumerate(found.source) if token == target]
        copied = float(found.mean()[row, columns].sum())
        assert math.exp(scored.token_log_probs[row]) == pytest.approx(copied, abs=1e-5)


def test_labels_have_the_probability_of_copying(predictor):
    open_gate(predictor, math.log(3))
    rows, columns = predictor.attend(EXAMPLES)[1].labels
    assert rows == ["c 0.25", "<eos> 0.25"]
    assert columns == ["c", "a", "b", "<eos>"]


def test_map_of_an_ensemble_is_the_mean_of_its_members(predictor):
    open_gate(predictor, 0.0)
    single = predictor.attend(EXAMPLES)
    predictor.model = Ensemble([predictor.model, predictor.model])
    for found, expected in zip(predictor.attend(EXAMPLES), single, strict=True):
        assert found.kind == "copying"
        assert torch.allclose(found.mean(), expected.mean(), atol=1e-6)
