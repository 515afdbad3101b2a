"""Claims about every encoder and decoder, over every row of the tables."""

import dataclasses
import json
from functools import partial

import pytest
import torch

from regard.attention.multihead import MultiHeadAttention
from regard.attention.positions import POSITIONS
from regard.attention.scores import SCORES
from regard.attention.spans import SPANS
from regard.core.config import from_dict, to_dict
from regard.models.build import ModelConfig
from regard.models.decoders import (
    DECODERS,
    BahdanauDecoderConfig,
    LuongDecoderConfig,
    RecurrentPrefixDecoderConfig,
    TransformerDecoderConfig,
)
from regard.models.encoders import ENCODERS
from regard.models.encoders.mlp import MlpEncoder
from regard.models.encoders.rnn import RnnEncoderConfig
from regard.models.encoders.tables import TEXT_ENCODERS, TokenEncoderConfig
from regard.models.encoders.transformer import TransformerEncoderConfig
from regard.models.layers import FEED_FORWARDS, NORMS, SequenceBatchNorm
from regard.training.checkpoint import load_weights, save_weights
from regard.training.loading import load_model
from tests.all_pairs import Choice, Matrix, variants
from tests.fixtures.parts import TINY_DECODERS, TINY_ENCODERS
from tests.fixtures.variants import CELLS, CONTEXTS, COPYING, YES_NO, can_copy

PRECISIONS = {"full": False, "mixed": True}


def describe(configs):
    """Return settings with the labels of their kind and of what differs within a kind."""
    names = ("kind", "cell", "is_bidirectional", "span", "readout", "summary", "stem")
    return {
        label: Choice(
            config, {name: str(getattr(config, name)) for name in names if hasattr(config, name)}
        )
        for label, config in configs.items()
    }


def widen(config):
    """Return settings with embeddings as wide as the states, so that matrices can be shared."""
    widths = {name: 4 for name in ("embedding_dim", "dim") if hasattr(config, name)}
    return dataclasses.replace(config, **widths)


def build_config(encoder, decoder, copying, ties):
    if ties != "none":
        encoder, decoder = widen(encoder), widen(decoder)
    return ModelConfig(encoder=encoder, decoder=decoder, copying=copying, ties=ties)


def is_valid(encoder, decoder, copying, ties):
    has_table = isinstance(encoder, tuple(TEXT_ENCODERS))
    # With these large weights, a vanilla recurrence over the positions of an image or a video
    # amplifies rounding errors.
    is_unstable = (
        isinstance(decoder, RecurrentPrefixDecoderConfig)
        and decoder.cell == "vanilla"
        and not isinstance(encoder, TokenEncoderConfig)
    )
    return can_copy(encoder, decoder, copying) and (has_table or ties != "all") and not is_unstable


TINY_MODELS = Matrix(
    "tiny models",
    build=build_config,
    is_valid=is_valid,
    encoder=describe(TINY_ENCODERS),
    decoder=describe(TINY_DECODERS),
    copying=COPYING,
    ties={"": "none", "tied_output": "output", "all_tied": "all"},
)


def loss_of(model, sentences, teacher_forcing=1.0):
    torch.manual_seed(0)  # equal samples in every call
    logits = model(
        sentences.source,
        sentences.mask,
        sentences.targets[:, :-1],
        teacher_forcing=teacher_forcing,
    ).logits
    labels = sentences.targets[:, 1:]
    return logits, torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())


def gradients_of(model):
    return {name: parameter.grad for name, parameter in model.named_parameters()}


def without_gradient(model):
    """Return parameters of attention that have no effect, so that their gradients may be zero.

    A key's bias adds the same to all scores of a query. A value's bias adds the same to all states,
    which batch norm subtracts again. Over one state, attention has the weight 1 for any scores.
    """
    if isinstance(model.encoder, MlpEncoder):
        names = dict(model.named_parameters())
        return {name for name in names if "attention" in name or "query_map" in name}
    attention = [
        name for name, module in model.named_modules() if isinstance(module, MultiHeadAttention)
    ]
    has_batch_norm = any(isinstance(module, SequenceBatchNorm) for module in model.modules())
    maps = ("key_map", "value_map") if has_batch_norm else ("key_map",)
    return {f"{name}.{each}.bias" for name in attention for each in maps}


def assert_all_have_gradients(model):
    without = without_gradient(model)
    for name, gradient in gradients_of(model).items():
        assert gradient is not None, f"{name} has no gradient"
        assert gradient.isfinite().all(), f"{name} has a gradient that is not finite"
        assert gradient.abs().sum() > 0 or name in without, f"{name} has a gradient of zeros"


def relative_distance(ours, theirs):
    """Return the distance of two tensors as a share of the norm of the second."""
    return ((ours.float() - theirs).norm() / theirs.norm()).item()


def test_every_encoder_has_a_tiny_one():
    assert {type(config) for config in TINY_ENCODERS.values()} == set(ENCODERS)


def test_every_decoder_has_a_tiny_one():
    assert {type(config) for config in TINY_DECODERS.values()} == set(DECODERS)


def test_every_encoder_occurs_with_every_decoder():
    pairs = {
        (type(values["encoder"]), type(values["decoder"]))
        for values in map(TINY_MODELS.values, TINY_MODELS.selected)
    }
    assert len(pairs) == len(ENCODERS) * len(DECODERS)


@pytest.mark.matrix("config", TINY_MODELS)
class TestTinyModels:
    @pytest.fixture
    def sentences(self, config, inputs_of):
        return inputs_of(config)

    def test_logits_are_finite_and_one_per_token(self, config, build, sentences):
        logits = build(config)(sentences.source, sentences.mask, sentences.targets).logits
        assert logits.shape == (3, 6, 11)
        assert logits.isfinite().all()

    def test_every_parameter_has_a_gradient(self, config, build, sentences):
        model = build(config).train()
        loss_of(model, sentences)[1].backward()
        assert_all_have_gradients(model)

    def test_settings_as_json_load_back_to_equal_settings(self, config):
        plain = json.loads(json.dumps(to_dict(config)))
        assert from_dict(ModelConfig, plain) == config

    def test_mixed_precision_is_close_to_full_precision(self, config, build, sentences):
        model = build(config).train()
        full, loss = loss_of(model, sentences)
        loss.backward()
        expected = torch.cat([gradient.flatten() for gradient in gradients_of(model).values()])
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            mixed, loss = loss_of(model, sentences)
        loss.backward()
        assert_all_have_gradients(model)
        gradients = torch.cat([gradient.flatten() for gradient in gradients_of(model).values()])
        assert relative_distance(mixed, full.detach()) < 3e-2
        # A maxout or a maximum over positions may select the other of two nearly equal values, and
        # a rectifier switch where values are almost zero. Unrelated gradients are 1.4 apart.
        assert relative_distance(gradients, expected) < 0.7

    def test_mixed_precision_works_with_sampled_inputs(self, config, build, sentences):
        model = build(config).train()
        with torch.autocast("cpu", torch.bfloat16):
            _, loss = loss_of(model, sentences, teacher_forcing=0.5)
        loss.backward()
        assert_all_have_gradients(model)

    @torch.no_grad()
    def test_saved_and_loaded_equals_the_original(self, config, build, sentences, tmp_path):
        model, other = build(config), build(config, seed=1)
        save_weights(model, tmp_path / "model.safetensors")
        load_weights(other, tmp_path / "model.safetensors")
        loaded = load_model(partial(build, config, seed=1), tmp_path / "model.safetensors")
        expected = loss_of(model, sentences)[0]
        for same in (other, loaded):
            assert torch.equal(loss_of(same, sentences)[0], expected)
            decoder = getattr(same.decoder, "decoder", same.decoder)
            assert (decoder.output.weight is decoder.embedding.weight) == (config.ties != "none")
        assert loaded.state_dict().keys() == model.state_dict().keys()
        assert [p.requires_grad for p in loaded.parameters()] == [
            p.requires_grad for p in model.parameters()
        ]


def assert_trains(model, sentences, *, is_mixed):
    with torch.autocast("cpu", torch.bfloat16, enabled=is_mixed):
        loss_of(model.train(), sentences)[1].backward()
    assert_all_have_gradients(model)


RNN_ENCODERS = Matrix(
    "recurrent encoders",
    cell=CELLS,
    context=CONTEXTS,
    is_reversed={"": False, "reversed": True},
    is_bidirectional={"": False, "bidirectional": True},
    is_mixed=PRECISIONS,
)


@pytest.mark.matrix("cell, context, is_reversed, is_bidirectional, is_mixed", RNN_ENCODERS)
def test_every_recurrent_encoder_trains(
    build, sentences, cell, context, is_reversed, is_bidirectional, is_mixed
):
    encoder = RnnEncoderConfig(
        cell=cell,
        context=context,
        is_reversed=is_reversed,
        is_bidirectional=is_bidirectional,
        embedding_dim=4,
        dim=3,
    )
    assert_trains(build(ModelConfig(encoder=encoder)), sentences, is_mixed=is_mixed)


SIZES = {"embedding_dim": 5, "dim": 6, "attention_dim": 4, "max_source": 9}
SCORED_DECODERS = Matrix(
    "scores and spans",
    decoder=variants(BahdanauDecoderConfig, score=SCORES.keys(), sizes=SIZES)
    | variants(
        LuongDecoderConfig,
        score=SCORES.keys(),
        span=SPANS.keys(),
        is_input_fed=YES_NO,
        sizes={"window": 2, **SIZES},
    ),
    is_mixed=PRECISIONS,
)


@pytest.mark.matrix("decoder, is_mixed", SCORED_DECODERS)
def test_every_score_and_span_trains(build, sentences, decoder, is_mixed):
    config = ModelConfig(encoder=RnnEncoderConfig(embedding_dim=4, dim=6), decoder=decoder)
    assert_trains(build(config), sentences, is_mixed=is_mixed)


def build_transformer(is_mixed, **settings):
    sizes = {"dim": 8, "num_heads": 4, "num_layers": 2, "feed_forward_dim": 5, "dropout": 0.0}
    config = ModelConfig(
        encoder=TransformerEncoderConfig(**sizes, **settings, max_length=9),
        decoder=TransformerDecoderConfig(**sizes, **settings, max_length=9),
    )
    return config, is_mixed


TRANSFORMERS = Matrix(
    "trained transformers",
    build=build_transformer,
    # Without norms, states after gated layers are so large that a softmax has no gradient.
    is_valid=lambda norm, feed_forward, **_: (norm, feed_forward) != ("none", "gated"),
    positions=POSITIONS.keys(),
    norm=NORMS.keys(),
    is_norm_first={"norm_first": True, "norm_last": False},
    feed_forward=FEED_FORWARDS.keys(),
    num_key_heads=(1, 2, 4),
    is_mixed=PRECISIONS,
)


@pytest.mark.matrix("case", TRANSFORMERS)
def test_every_transformer_trains(build, sentences, case):
    config, is_mixed = case
    assert from_dict(ModelConfig, to_dict(config)) == config
    assert_trains(build(config), sentences, is_mixed=is_mixed)
