"""Properties of every encoder and decoder, for every entry of the tables."""

import dataclasses
import json

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
    TransformerDecoderConfig,
)
from regard.models.encoders import ENCODERS
from regard.models.encoders.rnn import RnnEncoderConfig
from regard.models.encoders.tables import TEXT_ENCODERS
from regard.models.encoders.transformer import TransformerEncoderConfig
from regard.models.layers import FEED_FORWARDS, NORMS
from regard.training.checkpoint import load_weights, save_weights

CONTEXTS = ("last", "mean", "max")


def loss_of(model, sentences, teacher_forcing=1.0):
    torch.manual_seed(0)  # same random numbers in every call
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


def key_biases(model):
    """Key biases, whose gradient is zero: they add a constant to all scores of a query."""
    return {
        f"{name}.key_map.bias"
        for name, module in model.named_modules()
        if isinstance(module, MultiHeadAttention)
    }


def assert_all_have_gradients(model):
    zero_gradient = key_biases(model)
    for name, gradient in gradients_of(model).items():
        assert gradient is not None, f"{name} has no gradient"
        assert gradient.isfinite().all(), f"{name} has a gradient that is not finite"
        assert gradient.abs().sum() > 0 or name in zero_gradient, f"{name} has a gradient of zeros"


def distance(ours, theirs):
    """Relative distance of two tensors."""
    return ((ours.float() - theirs).norm() / theirs.norm()).item()


def test_every_encoder_has_a_tiny_config(tiny_encoders):
    assert {type(config) for config in tiny_encoders.values()} == set(ENCODERS)


def test_every_decoder_has_a_tiny_config(tiny_decoders):
    assert {type(config) for config in tiny_decoders.values()} == set(DECODERS)


def test_logits_are_finite_for_every_token(tiny_config, build, inputs_of):
    model = build(tiny_config)
    sentences = inputs_of(tiny_config)
    logits = model(sentences.source, sentences.mask, sentences.targets).logits
    assert logits.shape == (3, 6, 11)
    assert logits.isfinite().all()


def test_every_parameter_gets_a_gradient(tiny_config, build, inputs_of):
    model = build(tiny_config).train()
    sentences = inputs_of(tiny_config)
    loss_of(model, sentences)[1].backward()
    assert_all_have_gradients(model)


def test_settings_round_trip(tiny_config):
    plain = json.loads(json.dumps(to_dict(tiny_config)))
    assert from_dict(ModelConfig, plain) == tiny_config


def test_mixed_precision_is_close_to_full(tiny_config, build, inputs_of):
    model = build(tiny_config).train()
    sentences = inputs_of(tiny_config)
    full, loss = loss_of(model, sentences)
    loss.backward()
    expected = torch.cat([gradient.flatten() for gradient in gradients_of(model).values()])
    model.zero_grad()
    with torch.autocast("cpu", torch.bfloat16):
        mixed, loss = loss_of(model, sentences)
    loss.backward()
    assert_all_have_gradients(model)
    found = torch.cat([gradient.flatten() for gradient in gradients_of(model).values()])
    assert distance(mixed, full.detach()) < 3e-2
    # A maxout or a maximum over positions may choose the other of two nearly equal values.
    assert distance(found, expected) < 0.2


def test_mixed_precision_works_with_sampled_inputs(tiny_config, build, inputs_of):
    model = build(tiny_config).train()
    sentences = inputs_of(tiny_config)
    with torch.autocast("cpu", torch.bfloat16):
        _, loss = loss_of(model, sentences, teacher_forcing=0.5)
    loss.backward()
    assert_all_have_gradients(model)


def of_kind(tiny, settings):
    """The first tiny config of a kind, with embeddings as wide as the states."""
    config = next(config for config in tiny.values() if type(config) is settings)
    widths = {name: 4 for name in ("embedding_dim", "dim") if hasattr(config, name)}
    return dataclasses.replace(config, **widths)


@pytest.mark.parametrize("decoder", DECODERS, ids=lambda settings: settings.kind)
@pytest.mark.parametrize(
    ("encoder", "ties"),
    [
        *((settings, "output") for settings in ENCODERS),
        *((settings, "all") for settings in TEXT_ENCODERS),
    ],
    ids=lambda value: getattr(value, "kind", value),
)
class TestTies:
    @pytest.fixture
    def config(self, tiny_encoders, tiny_decoders, encoder, decoder, ties):
        return ModelConfig(
            encoder=of_kind(tiny_encoders, encoder),
            decoder=of_kind(tiny_decoders, decoder),
            ties=ties,
        )

    @pytest.fixture
    def sentences(self, config, inputs_of):
        return inputs_of(config)

    def test_tied_model_trains(self, config, build, sentences):
        model = build(config).train()
        loss_of(model, sentences)[1].backward()
        assert_all_have_gradients(model)

    def test_tied_model_is_saved_and_loaded(self, config, build, sentences, tmp_path):
        model, other = build(config), build(config, seed=1)
        save_weights(model, tmp_path / "model.safetensors")
        load_weights(other, tmp_path / "model.safetensors")
        assert other.decoder.output.weight is other.decoder.embedding.weight
        with torch.no_grad():
            ours, theirs = (loss_of(either, sentences)[0] for either in (other, model))
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("is_reversed", [False, True], ids=["straight", "reversed"])
def test_every_recurrent_encoder_option_trains(build, sentences, context, is_reversed):
    encoder = RnnEncoderConfig(
        embedding_dim=4, dim=3, context=context, is_reversed=is_reversed, is_bidirectional=True
    )
    model = build(ModelConfig(encoder=encoder)).train()
    with torch.autocast("cpu", torch.bfloat16):
        loss_of(model, sentences)[1].backward()
    assert_all_have_gradients(model)


SIZES = {"embedding_dim": 5, "dim": 6, "attention_dim": 4, "max_source": 9}
ATTENTIVE = [
    *(BahdanauDecoderConfig(score=score, **SIZES) for score in SCORES),
    *(
        LuongDecoderConfig(score=score, span=span, is_input_fed=is_fed, window=2, **SIZES)
        for score in SCORES
        for span in SPANS
        for is_fed in (True, False)
    ),
]


def name_decoder(decoder):
    if isinstance(decoder, BahdanauDecoderConfig):
        return f"bahdanau-{decoder.score}"
    return f"luong-{decoder.score}-{decoder.span}-{'fed' if decoder.is_input_fed else 'unfed'}"


@pytest.mark.parametrize("is_mixed", [False, True], ids=["full", "mixed"])
@pytest.mark.parametrize("decoder", ATTENTIVE, ids=name_decoder)
def test_every_score_and_span_trains(build, sentences, decoder, is_mixed):
    encoder = RnnEncoderConfig(embedding_dim=4, dim=6)
    model = build(ModelConfig(encoder=encoder, decoder=decoder)).train()
    with torch.autocast("cpu", torch.bfloat16, enabled=is_mixed):
        loss_of(model, sentences)[1].backward()
    assert_all_have_gradients(model)


TRANSFORMER = {"dim": 8, "num_heads": 4, "num_layers": 2, "feed_forward_dim": 5, "dropout": 0.0}
CHOICES = [
    *({"positions": positions, "max_length": 9} for positions in POSITIONS),
    *({"norm": norm, "is_norm_first": True} for norm in NORMS),
    *({"norm": norm, "is_norm_first": False} for norm in NORMS),
    *({"feed_forward": kind} for kind in FEED_FORWARDS),
    *({"num_key_heads": number} for number in (1, 2, 4)),
]


@pytest.mark.parametrize("is_mixed", [False, True], ids=["full", "mixed"])
@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: "-".join(map(str, choice.values())))
def test_every_transformer_option_trains(build, sentences, choice, is_mixed):
    config = ModelConfig(
        encoder=TransformerEncoderConfig(**TRANSFORMER, **choice),
        decoder=TransformerDecoderConfig(**TRANSFORMER, **choice),
    )
    assert from_dict(ModelConfig, to_dict(config)) == config
    model = build(config).train()
    with torch.autocast("cpu", torch.bfloat16, enabled=is_mixed):
        loss_of(model, sentences)[1].backward()
    assert_all_have_gradients(model)
