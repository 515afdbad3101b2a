import dataclasses

import pytest
import torch

from regard.attention.recording import record
from regard.core.errors import ConfigError
from regard.models.decoders import ConvolutionDecoder, ConvolutionDecoderConfig

LENGTHS = [5, 2, 4]


def build_decoder(**changes):
    torch.manual_seed(0)
    sizes = {"embedding_dim": 3, "dim": 6, "num_layers": 2, "max_length": 9, "dropout": 0.0}
    return ConvolutionDecoder(ConvolutionDecoderConfig(**(sizes | changes)), 9, memory_dim=4).eval()


@pytest.fixture
def targets():
    return torch.tensor([[2, 5, 8, 4], [2, 4, 4, 7], [2, 8, 6, 5]])


def attend_by_hand(block, hidden, word, states, values):
    """The context of one position, and its weights."""
    query = (block.query_map(hidden) + word) / 2**0.5
    mapped = [block.attention.score.key_map.weight @ state for state in states]
    powers = torch.stack([query @ key for key in mapped]).exp()
    weights = powers / powers.sum()
    context = sum(weight * value for weight, value in zip(weights, values, strict=True))
    return block.context_map(context * len(states) ** 0.5), weights


def read_by_hand(decoder, tokens, states, values, kernel):
    """Logits and weights by layer of one sentence, position by position."""
    words = decoder.embedding(tokens) + decoder.positions.embedding.weight[: len(tokens)]
    inputs, maps = decoder.input_map(words), []
    for block in decoder.blocks:
        wide = torch.cat([torch.zeros(kernel - 1, 6), inputs])
        outputs, steps = [], []
        for position, word in enumerate(words):
            hidden = block.convolution(wide[None, position : position + kernel])[0, 0]
            context, weights = attend_by_hand(block, hidden, word, states, values)
            hidden = (hidden + context) / 2**0.5
            outputs.append((hidden + inputs[position]) / 2**0.5)
            steps.append(weights)
        inputs = torch.stack(outputs)
        maps.append(torch.stack(steps))
    return decoder.output(decoder.output_map(inputs)), torch.stack(maps)


@pytest.mark.parametrize("has_values", [False, True], ids=["states", "values"])
@pytest.mark.parametrize("kernel", [1, 2, 3])
def test_steps_follow_the_paper(memory, targets, kernel, has_values):
    if has_values:
        memory = dataclasses.replace(memory, values=torch.randn(3, 5, 4))
    decoder = build_decoder(kernel=kernel)
    with record(decoder) as maps:
        logits = decoder(targets, memory).logits
    assert maps.stack().shape == (3, 2, 1, 4, 5)  # (B, N, H, T, S)
    values = memory.values if has_values else memory.states
    for row, length in enumerate(LENGTHS):
        expected, weights = read_by_hand(
            decoder, targets[row], memory.states[row, :length], values[row, :length], kernel
        )
        assert torch.allclose(logits[row], expected, atol=1e-5)
        assert torch.allclose(maps.stack()[row, :, 0, :, :length], weights, atol=1e-5)


@pytest.mark.parametrize("kernel", [1, 3, 4])
def test_later_token_never_changes_earlier_logits(memory, targets, kernel):
    decoder = build_decoder(kernel=kernel)
    changed = targets.clone()
    changed[:, 2] = 3
    before, after = (decoder(given, memory).logits for given in (targets, changed))
    assert torch.equal(before[:, :2], after[:, :2])
    assert not torch.allclose(before[:, 2], after[:, 2], atol=1e-3)


def test_size_of_the_state_does_not_depend_on_the_length(memory, targets):
    decoder = build_decoder(kernel=3)
    _, state = decoder.step(targets, decoder.start(memory))
    assert [past.shape for past in state.per_hypothesis["layers"]] == [(3, 2, 6)] * 2


def test_keys_are_prepared_once_per_sentence(memory):
    state = build_decoder().start(memory, beams=4)
    assert [prepared["keys"].shape for prepared in state.per_source] == [(3, 5, 3)] * 2
    assert [past.shape for past in state.per_hypothesis["layers"]] == [(12, 2, 6)] * 2


def test_target_longer_than_the_learned_positions_is_an_error(memory, targets):
    decoder = build_decoder(max_length=3)
    _, state = decoder.step(targets[:, :3], decoder.start(memory))
    with pytest.raises(
        ConfigError, match=r"^`max_length` must be at least the length of the text \(4 tokens\) "
    ):
        decoder.step(targets[:, 3:], state)


def test_dropout_is_active_in_training_only(memory, targets):
    decoder = build_decoder(dropout=0.5)
    assert torch.equal(decoder(targets, memory).logits, decoder(targets, memory).logits)
    decoder.train()
    assert not torch.equal(decoder(targets, memory).logits, decoder(targets, memory).logits)
