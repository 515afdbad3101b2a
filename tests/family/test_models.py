"""What every encoder and decoder must do, over every row of the tables."""

import json

import pytest
import torch

from regard.attention.scores import SCORES
from regard.core.config import from_dict, to_dict
from regard.models.build import ModelConfig
from regard.models.decoders import BahdanauDecoderConfig, LuongDecoderConfig
from regard.models.encoders import RnnEncoderConfig

CONTEXTS = ("last", "mean", "max")


def loss_of(model, sentences, teacher_forcing=1.0):
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


def assert_all_learn(model):
    for name, gradient in gradients_of(model).items():
        assert gradient is not None, f"{name} has no gradient"
        assert gradient.isfinite().all(), f"{name} has a gradient that is not finite"
        assert gradient.abs().sum() > 0, f"{name} has a gradient of zeros"


def distance(ours, theirs):
    """How far two tensors are apart, as a share of the second."""
    return ((ours.float() - theirs).norm() / theirs.norm()).item()


def test_logits_are_finite_and_one_a_token(tiny_config, build, sentences):
    model = build(tiny_config)
    logits = model(sentences.source, sentences.mask, sentences.targets).logits
    assert logits.shape == (3, 6, 11)
    assert logits.isfinite().all()


def test_every_parameter_learns(tiny_config, build, sentences):
    model = build(tiny_config).train()
    loss_of(model, sentences)[1].backward()
    assert_all_learn(model)


def test_settings_round_trip(tiny_config):
    plain = json.loads(json.dumps(to_dict(tiny_config)))
    assert from_dict(ModelConfig, plain) == tiny_config


def test_mixed_precision_is_close_to_full(tiny_config, build, sentences):
    model = build(tiny_config).train()
    full, loss = loss_of(model, sentences)
    loss.backward()
    expected = torch.cat([gradient.flatten() for gradient in gradients_of(model).values()])
    model.zero_grad()
    with torch.autocast("cpu", torch.bfloat16):
        mixed, loss = loss_of(model, sentences)
    loss.backward()
    assert_all_learn(model)
    found = torch.cat([gradient.flatten() for gradient in gradients_of(model).values()])
    assert distance(mixed, full.detach()) < 3e-2
    # A maxout or a maximum over positions may choose the other of two nearly equal values.
    assert distance(found, expected) < 0.2


def test_mixed_precision_works_with_sampled_inputs(tiny_config, build, sentences):
    model = build(tiny_config).train()
    torch.manual_seed(0)
    with torch.autocast("cpu", torch.bfloat16):
        _, loss = loss_of(model, sentences, teacher_forcing=0.5)
    loss.backward()
    assert_all_learn(model)


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("is_reversed", [False, True], ids=["straight", "reversed"])
def test_every_way_to_read_the_source_learns(build, sentences, context, is_reversed):
    encoder = RnnEncoderConfig(
        embedding_dim=4, dim=3, context=context, is_reversed=is_reversed, is_bidirectional=True
    )
    model = build(ModelConfig(encoder=encoder)).train()
    with torch.autocast("cpu", torch.bfloat16):
        loss_of(model, sentences)[1].backward()
    assert_all_learn(model)


SIZES = {"embedding_dim": 5, "dim": 6, "attention_dim": 4, "max_source": 9}
ATTENTIVE = [
    *(BahdanauDecoderConfig(score=score, **SIZES) for score in SCORES),
    *(
        LuongDecoderConfig(score=score, reach=reach, is_input_fed=is_fed, window=2, **SIZES)
        for score in SCORES
        for reach in ("global", "local_m", "local_p")
        for is_fed in (True, False)
    ),
]


def name_decoder(decoder):
    if isinstance(decoder, BahdanauDecoderConfig):
        return f"bahdanau-{decoder.score}"
    return f"luong-{decoder.score}-{decoder.reach}-{'fed' if decoder.is_input_fed else 'unfed'}"


@pytest.mark.parametrize("is_mixed", [False, True], ids=["full", "mixed"])
@pytest.mark.parametrize("decoder", ATTENTIVE, ids=name_decoder)
def test_every_score_and_reach_learns(build, sentences, decoder, is_mixed):
    encoder = RnnEncoderConfig(embedding_dim=4, dim=6)
    model = build(ModelConfig(encoder=encoder, decoder=decoder)).train()
    with torch.autocast("cpu", torch.bfloat16, enabled=is_mixed):
        loss_of(model, sentences)[1].backward()
    assert_all_learn(model)
