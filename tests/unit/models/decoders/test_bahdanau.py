import pytest
import torch

from regard.attention.recording import record
from regard.core.errors import ConfigError
from regard.models.decoders import BahdanauDecoder, BahdanauDecoderConfig

LENGTHS = [5, 2, 4]


@pytest.fixture
def decoder():
    torch.manual_seed(0)
    config = BahdanauDecoderConfig(embedding_dim=3, dim=6, attention_dim=5)
    return BahdanauDecoder(config, 9, memory_dim=4).eval()


def align(score, hidden, keys):
    """α_j = softmax of v · tanh(W s + U h_j + b) over the real positions."""
    scores = [
        score.weight.weight[0]
        @ torch.tanh(
            score.query_map.weight @ hidden + score.key_map.weight @ key + score.key_map.bias
        )
        for key in keys
    ]
    powers = torch.stack(scores).exp()
    return powers / powers.sum()


def test_steps_follow_the_paper(decoder, memory, gru_by_hand, maxout_by_hand):
    targets = torch.tensor([[2, 5, 8]] * 3)
    with record(decoder) as maps:
        logits = decoder(targets, memory).logits
    for row, length in enumerate(LENGTHS):
        keys = memory.states[row, :length]
        hidden = decoder.bridge.maps[0](memory.summary[row]).tanh()
        for position, token in enumerate(targets[row]):
            weights = align(decoder.attention.score, hidden, keys)
            context = sum(weight * key for weight, key in zip(weights, keys, strict=True))
            word = decoder.embedding.weight[token]
            hidden = gru_by_hand(decoder.recurrence.sequence, torch.cat([word, context]), hidden)
            readout = maxout_by_hand(decoder.readout, hidden, word, context)
            expected = decoder.output.weight @ readout + decoder.output.bias
            assert torch.allclose(logits[row, position], expected, atol=1e-5)
            assert torch.allclose(maps.stack()[row, 0, 0, position, :length], weights, atol=1e-6)


def test_step_without_the_last_state_depends_on_word_and_context_only(memory, gru_by_hand):
    torch.manual_seed(0)
    config = BahdanauDecoderConfig(
        start="copy",
        readout="linear",
        is_recurrent=False,
        embedding_dim=3,
        dim=4,
        attention_dim=5,
    )
    decoder = BahdanauDecoder(config, 9, memory_dim=4).eval()
    targets = torch.tensor([[2, 5, 8]] * 3)
    logits = decoder(targets, memory).logits
    for row, length in enumerate(LENGTHS):
        keys = memory.states[row, :length]
        hidden = memory.final[-1][0][row]
        for position, token in enumerate(targets[row]):
            context = align(decoder.attention.score, hidden, keys) @ keys
            inputs = torch.cat([decoder.embedding.weight[token], context])
            hidden = gru_by_hand(decoder.recurrence.sequence, inputs, torch.zeros(4))
            expected = decoder.output.weight @ hidden + decoder.output.bias
            assert torch.allclose(logits[row, position], expected, atol=1e-5)


def test_keys_are_prepared_once_per_sentence(decoder, memory):
    state = decoder.start(memory, beams=4)
    assert state.per_source["keys"].shape == (3, 5, 5)
    assert state.per_hypothesis["layers"][0][0].shape == (12, 6)


def test_settings_have_limits():
    with pytest.raises(ConfigError, match=r"^`attention_dim` must be at least 1, but is 0\.$"):
        BahdanauDecoderConfig(attention_dim=0)
