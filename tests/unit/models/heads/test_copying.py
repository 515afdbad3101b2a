import math
import re

import pytest
import torch

from regard.core.config import from_dict
from regard.core.errors import ConfigError
from regard.core.specs import TextSpec
from regard.models.build import ModelConfig, build_model
from regard.models.decoders import PrefixDecoderConfig
from regard.models.encoders.embedding import EmbeddingEncoderConfig
from regard.models.encoders.sentences import SentencesEncoderConfig
from regard.models.encoders.transformer import TransformerEncoderConfig
from regard.models.heads.copying import CoverageAttention, PointerConfig
from regard.models.interfaces import Memory
from regard.training.checkpoint import save_weights

VOCAB_SIZE = 11


@pytest.fixture(params=["lstm-both-bahdanau-lstm", "transformer-transformer"])
def name(request):
    return request.param


@pytest.fixture(params=["pointer", "coverage"])
def model(request, name, tiny_pointers, build):
    return build(tiny_pointers[f"{name}-{request.param}"])


def open_gate(model, value):
    """Set the gate to a constant."""
    with torch.no_grad():
        model.decoder.copying.gate.weight.zero_()
        model.decoder.copying.gate.bias.fill_(value)


def say(model, sentences):
    return model(sentences.source, sentences.mask, sentences.targets).logits


def test_probabilities_sum_to_one(model, sentences):
    sums = say(model, sentences).exp().sum(-1)
    assert torch.allclose(sums, torch.ones(3, 6), atol=1e-5)


def test_softmax_does_not_change_log_probabilities(model, sentences):
    log_probs = say(model, sentences)
    assert torch.allclose(log_probs.log_softmax(-1), log_probs, atol=1e-5)


def test_without_copying_it_equals_the_inner_decoder(model, name, tiny_configs, build, sentences):
    open_gate(model, 60.0)
    plain = build(tiny_configs[name])
    weights = model.state_dict()
    plain.load_state_dict(
        {key: weights.get(key.replace("decoder.", "decoder.inner.")) for key in plain.state_dict()}
        | {f"decoder.output.{key}": weights[f"decoder.output.{key}"] for key in ("weight", "bias")}
    )
    expected = say(plain, sentences).log_softmax(-1)
    assert torch.allclose(say(model, sentences), expected, atol=1e-5)


def test_without_generation_only_source_tokens_are_possible(model, sentences):
    open_gate(model, -60.0)
    probabilities = say(model, sentences).exp()
    for row, (length, found) in enumerate(zip(sentences.lengths, probabilities, strict=True)):
        *source, end = sentences.source[row, :length].tolist()
        allowed = set(source) - {end}
        assert allowed
        for token in range(VOCAB_SIZE):
            assert (found[:, token] > 1e-9).all() == (token in allowed)


def test_copy_probability_is_summed_over_the_positions_of_a_token(model):
    open_gate(model, -60.0)
    source, mask = torch.tensor([[5, 7, 5, 3]]), torch.ones(1, 4, dtype=torch.bool)
    memory = model.encode(source, mask)
    state = model.start(memory)
    inner = model.decoder.inner.start(memory)
    states, _ = model.decoder.inner.step(torch.tensor([[2]]), inner)
    copies = model.decoder.copying(
        states, state.per_source["source"], state.per_hypothesis["coverage"]
    )
    first, second, third, end = copies.copied[0, 0].tolist()
    probs = model.step(torch.tensor([[2]]), state)[0].exp()[0, 0].tolist()
    assert probs[5] == pytest.approx(first + third, abs=1e-6)
    assert probs[7] == pytest.approx(second, abs=1e-6)
    assert end == 0


def test_end_tokens_of_several_texts_are_not_copied(model):
    source = torch.tensor([[5, 3, 7, 6, 3, 0]])
    memory = model.encode(source, source != 0)
    assert model.start(memory).per_source["source"]["mask"].tolist() == [
        [True, False, True, True, False, False]
    ]


def test_without_copyable_tokens_the_vocabulary_has_all_probability(model, sentences):
    source = torch.tensor([[3, 0]])
    log_probs = model(source, source != 0, sentences.targets[:1]).logits
    assert torch.allclose(log_probs.exp().sum(-1), torch.ones(1, 6), atol=1e-5)
    assert log_probs.isfinite().all()


@pytest.mark.parametrize("gate", [-200.0, 0.0, 200.0])
def test_gradients_are_finite_for_a_saturated_gate(model, sentences, gate):
    open_gate(model.train(), gate)
    say(model, sentences).mean().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


@pytest.fixture
def coverage():
    """Attention with known first-pass scores: 0 for keys of 0, ln 3 for the last."""
    attention = CoverageAttention(1, 1, dim=1)
    with torch.no_grad():
        attention.query_map.weight.fill_(1.0)
        attention.key_map.weight.fill_(math.log(3))
        attention.slope.weight.zero_()
        attention.slope.bias.fill_(-2.0)
        attention.gate.weight.zero_()
        attention.gate.bias.zero_()
    keys = torch.tensor([[[0.0], [1.0], [5.0]]])
    tokens, mask = torch.tensor([[4, 5, 3]]), torch.ones(1, 3, dtype=torch.bool)
    return attention, attention.prepare(
        Memory(states=keys, mask=mask, summary=keys[:, 0], tokens=tokens)
    )


def test_coverage_equals_a_direct_computation(coverage):
    attention, prepared = coverage
    with torch.no_grad():
        copies = attention(torch.ones(1, 3, 1), prepared, attention.start(prepared))
    # First-pass weights are 1/4 and 3/4 at every step; coverage is 0, then once and twice that.
    expected, overlaps = [], []
    for step in range(3):
        before = [step / 4, 3 * step / 4]
        left, right = math.exp(-2 * before[0]), 3 * math.exp(-2 * before[1])
        weights = [left / (left + right), right / (left + right)]
        expected.append([weights[0] / 2, weights[1] / 2, 0.0])
        overlaps.append(sum(map(min, weights, before)))
    assert torch.allclose(copies.copied[0], torch.tensor(expected), atol=1e-6)
    assert torch.allclose(copies.overlap[0], torch.tensor(overlaps), atol=1e-6)
    assert torch.allclose(copies.coverage[0], torch.tensor([0.75, 2.25, 0.0]), atol=1e-6)
    assert torch.allclose(copies.generated.exp(), torch.full((1, 3, 1), 0.5))


def test_coverage_loss_is_weighted_and_per_token(tiny_pointers, build, sentences):
    config = tiny_pointers["transformer-transformer-coverage"]
    losses = []
    for weight in (1.0, 3.0):
        copying = PointerConfig(dim=4, coverage=weight)
        model = build(ModelConfig(encoder=config.encoder, decoder=config.decoder, copying=copying))
        output = model(sentences.source, sentences.mask, sentences.targets)
        losses.append(output.losses["coverage"])
    assert losses[0].shape == (3, 6)
    assert (losses[0][:, 0] == 0).all()
    assert (losses[0][:, 1:] > 0).all()
    assert torch.allclose(losses[1], 3 * losses[0])


def test_without_coverage_there_is_no_additional_loss(tiny_pointers, build, sentences):
    model = build(tiny_pointers["transformer-transformer-pointer"])
    assert model(sentences.source, sentences.mask, sentences.targets).losses == {}


@pytest.mark.parametrize("ties", ["output", "all"])
def test_tied_weights_are_stored_once(ties, tmp_path):
    model = build_model(
        from_dict(
            ModelConfig,
            {
                "encoder": {"kind": "transformer", "dim": 4, "num_heads": 2},
                "decoder": {"kind": "transformer", "dim": 4, "num_heads": 2},
                "copying": {"kind": "pointer", "dim": 4},
                "ties": ties,
            },
        ),
        source=TextSpec(9),
        target_vocab_size=9,
    )
    assert model.decoder.output.weight is model.decoder.inner.embedding.weight
    assert (model.encoder.embedding.weight is model.decoder.embedding.weight) == (ties == "all")
    assert "decoder.embedding.weight" not in model.state_dict()
    save_weights(model, tmp_path / "model.safetensors")


def test_copying_with_a_prefix_decoder_is_an_error():
    with pytest.raises(
        ConfigError,
        match="`copying.kind` 'pointer'.*`decoder.kind` is 'prefix'.*'none'",
    ):
        ModelConfig(
            encoder=EmbeddingEncoderConfig(), decoder=PrefixDecoderConfig(), copying=PointerConfig()
        )


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (SentencesEncoderConfig(), "needs an encoder with a state for every token"),
        (TransformerEncoderConfig(pooling=2), "`encoder.pooling` must be 1 where tokens are"),
    ],
)
def test_tokens_that_share_a_state_cannot_be_copied(encoder, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        ModelConfig(encoder=encoder, copying=PointerConfig())


def test_two_vocabularies_are_an_error():
    with pytest.raises(
        ConfigError, match=r"^`copying` needs one joint vocabulary, but .+ 9 and 8 tokens\. Set"
    ):
        build_model(ModelConfig(copying=PointerConfig()), source=TextSpec(9), target_vocab_size=8)


@pytest.mark.parametrize(("name", "least"), [("dim", 0), ("coverage", -1.0)])
def test_sizes_have_limits(name, least):
    with pytest.raises(ConfigError, match=rf"`{name}` must be at least"):
        PointerConfig(**{name: least})
