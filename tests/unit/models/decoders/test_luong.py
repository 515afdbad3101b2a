from typing import get_args

import pytest
import torch

from regard.attention.recording import record
from regard.attention.spans import SPANS, SpanKind
from regard.core.errors import ConfigError
from regard.models.decoders import LuongDecoder, LuongDecoderConfig

LENGTHS = [5, 2, 4]


def build_decoder(**changes):
    torch.manual_seed(0)
    config = LuongDecoderConfig(embedding_dim=3, dim=4, **changes)
    return LuongDecoder(config, 9, memory_dim=4).eval()


def attentional_vector(decoder, hidden, keys):
    """h̃ = tanh(W [c; h]) with c attended from h by the general score."""
    scores = torch.stack([hidden @ (decoder.attention.score.key_map.weight @ key) for key in keys])
    weights = scores.exp() / scores.exp().sum()
    context = sum(weight * key for weight, key in zip(weights, keys, strict=True))
    return torch.tanh(decoder.attentional_map.weight @ torch.cat([context, hidden]))


@pytest.mark.parametrize("is_input_fed", [True, False], ids=["fed", "not-fed"])
def test_steps_follow_the_paper(memory, gru_by_hand, is_input_fed):
    decoder = build_decoder(is_input_fed=is_input_fed)
    targets = torch.tensor([[2, 5, 8]] * 3)
    logits = decoder(targets, memory).logits
    for row, length in enumerate(LENGTHS):
        hidden, vector = memory.final[-1][0][row], torch.zeros(4)
        for position, token in enumerate(targets[row]):
            word = decoder.embedding.weight[token]
            inputs = torch.cat([word, vector]) if is_input_fed else word
            hidden = gru_by_hand(decoder.recurrence.sequence, inputs, hidden)
            vector = attentional_vector(decoder, hidden, memory.states[row, :length])
            expected = decoder.output.weight @ vector + decoder.output.bias
            assert torch.allclose(logits[row, position], expected, atol=1e-5)


@pytest.mark.parametrize("span", SPANS)
def test_settings_select_the_span(span):
    attention = build_decoder(span=span, window=7).attention
    assert type(attention) is SPANS[span]
    assert attention.half_width == 7


def test_span_settings_equal_the_table():
    assert set(get_args(SpanKind)) == set(SPANS)


@pytest.mark.parametrize("is_input_fed", [True, False], ids=["fed", "not-fed"])
def test_moving_window_moves_with_every_step(memory, is_input_fed):
    decoder = build_decoder(span="local_m", window=1, is_input_fed=is_input_fed)
    state = decoder.start(memory)
    positions = []
    for _ in range(3):
        positions.append(state.per_hypothesis["attention"].tolist())
        _, state = decoder.step(torch.full((3, 1), 5), state)
    assert positions == [[0] * 3, [1] * 3, [2] * 3]


@pytest.mark.parametrize("is_input_fed", [True, False], ids=["fed", "not-fed"])
def test_monotonic_state_is_the_last_alignment(memory, is_input_fed):
    decoder = build_decoder(span="monotonic", is_input_fed=is_input_fed)
    with torch.no_grad():
        decoder.attention.offset.zero_()
        decoder.attention.gain.fill_(50.0)
    state = decoder.start(memory, beams=2)
    for _ in range(4):
        with record(decoder) as maps:
            _, state = decoder.step(torch.full((6, 1), 5), state)
        assert torch.equal(state.per_hypothesis["attention"], maps.stack()[:, 0, 0].flatten(0, 1))
    assert (state.per_hypothesis["attention"].argmax(1) > 0).any()


def test_keys_are_prepared_once_per_sentence(memory):
    state = build_decoder().start(memory, beams=4)
    assert state.per_source["keys"].shape == (3, 5, 4)
    assert state.per_hypothesis["fed"].shape == (12, 4)


@pytest.mark.parametrize("name", ["attention_dim", "window"])
def test_settings_have_limits(name):
    with pytest.raises(ConfigError, match=rf"^`{name}` must be at least 1, but is 0\.$"):
        LuongDecoderConfig(**{name: 0})
