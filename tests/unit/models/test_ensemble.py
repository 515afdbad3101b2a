import copy

import pytest
import torch

from regard.attention.recording import record
from regard.core.errors import ConfigError
from regard.core.specs import TextSpec
from regard.models.build import ModelConfig, build_model
from regard.models.decoders import TransformerDecoderConfig
from regard.models.ensemble import Ensemble
from regard.models.interfaces import reorder

KINDS = ("vanilla-one-bahdanau-gru", "transformer-transformer", "gru-both-cho-lstm")


@pytest.fixture
def members(tiny_configs, build):
    """Models of three kinds; the last has no attention."""
    return [build(tiny_configs[kind], seed) for seed, kind in enumerate(KINDS)]


@pytest.fixture
def many_heads(tiny_encoders, build):
    """A transformer with three heads and one layer, where the other has two and two."""
    decoder = TransformerDecoderConfig(
        dim=6, num_layers=1, num_heads=3, feed_forward_dim=5, dropout=0.0
    )
    return build(ModelConfig(encoder=tiny_encoders["gru-one"], decoder=decoder))


def say(model, sentences):
    with torch.no_grad():
        return model(sentences.source, sentences.mask, sentences.targets).logits


def record_maps(model, sentences):
    with record(model) as maps:
        say(model, sentences)
    return maps


def test_ensemble_of_one_equals_that_model(members, sentences):
    for member in members:
        expected = say(member, sentences).log_softmax(-1)
        assert torch.equal(say(Ensemble([member]), sentences), expected)


def test_ensemble_of_copies_equals_the_model(members, sentences):
    for member in members:
        copies = Ensemble([member, copy.deepcopy(member)])
        expected = say(member, sentences).log_softmax(-1)
        assert torch.allclose(say(copies, sentences), expected, atol=1e-6)


def test_probabilities_are_the_mean_of_the_members(members, sentences):
    ours = say(Ensemble(members), sentences)
    total = sum(say(member, sentences).softmax(-1) for member in members)
    assert torch.allclose(ours.exp(), total / 3, atol=1e-6)


def test_members_disagree(members, sentences):
    ours = say(Ensemble(members), sentences)
    for member in members:
        assert not torch.allclose(ours, say(member, sentences).log_softmax(-1), atol=1e-2)


def test_softmax_does_not_change_log_probabilities(members, sentences):
    ours = say(Ensemble(members), sentences)
    assert torch.allclose(ours.log_softmax(-1), ours, atol=1e-6)


def test_order_of_the_members_does_not_matter(members, sentences):
    first, second, third = members
    ours = say(Ensemble(members), sentences)
    assert torch.allclose(say(Ensemble([third, first, second]), sentences), ours, atol=1e-6)


def test_half_precision_is_averaged_in_float32(members, sentences):
    ours = say(Ensemble([member.bfloat16() for member in members]), sentences)
    assert ours.dtype == torch.float32
    assert torch.allclose(ours.exp().sum(-1), torch.ones(3, 6), atol=1e-6)


def test_every_member_reorders_its_hypotheses(members, sentences):
    model = Ensemble(members)
    with torch.no_grad():
        state = model.start(model.encode(sentences.source, sentences.mask), beams=2)
        tokens = torch.tensor([[4], [5], [6], [7], [8], [9]])
        _, state = model.step(tokens, state)
        expected, _ = model.step(tokens, state)
        rows = torch.tensor([1, 0, 3, 2, 5, 4])
        swapped, _ = model.step(tokens[rows], reorder(state, rows))
    assert torch.allclose(swapped, expected[rows], atol=1e-6)


def test_memory_has_batch_and_mask(members, sentences):
    memory = Ensemble(members).encode(sentences.source, sentences.mask)
    assert memory.states.shape[:2] == sentences.source.shape
    assert torch.equal(memory.mask, sentences.mask)
    assert len(memory.members) == 3


def test_weights_are_those_of_all_members(members):
    counts = [sum(weight.numel() for weight in member.parameters()) for member in members]
    ours = sum(weight.numel() for weight in Ensemble(members).parameters())
    assert ours == sum(counts)


def test_maps_are_those_of_all_members(members, sentences):
    recurrent, transformer, _ = members
    ours = record_maps(Ensemble(members), sentences).stack()
    assert ours.shape == (3, 3, 2, 6, 7)  # (B, N, H, T, S)
    alone = record_maps(recurrent, sentences).stack()
    assert torch.allclose(ours[:, :1], alone.expand(-1, -1, 2, -1, -1), atol=1e-6)
    assert torch.allclose(ours[:, 1:], record_maps(transformer, sentences).stack(), atol=1e-6)


def test_mean_map_weights_layers_equally(members, many_heads, sentences):
    both = (members[1], many_heads)
    ours = record_maps(Ensemble(both), sentences).stack()
    assert ours.shape[1:3] == (3, 6)
    layers = [record_maps(member, sentences).stack().mean(2) for member in both]
    assert torch.allclose(ours.mean((1, 2)), torch.cat(layers, dim=1).mean(1), atol=1e-6)


def test_members_without_attention_have_no_maps(members, sentences):
    without = members[2]
    assert record_maps(Ensemble([without, copy.deepcopy(without)]), sentences).num_layers == 0


def test_no_models_is_an_error():
    with pytest.raises(
        ConfigError, match=r"^`models` must be one or more with one target vocabulary, but there"
    ):
        Ensemble([])


def test_models_with_different_vocabularies_are_an_error(tiny_configs, members):
    config = tiny_configs[KINDS[0]]
    other = build_model(config, source=TextSpec(11), target_vocab_size=12)
    with pytest.raises(ConfigError, match=r"are 2, with vocabularies of \[11, 12\] tokens\.$"):
        Ensemble([members[0], other])
