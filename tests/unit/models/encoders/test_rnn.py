import pytest
import torch
from torch import nn

from regard.core.errors import ConfigError
from regard.core.specs import TextSpec
from regard.models.encoders.rnn import RnnEncoder, RnnEncoderConfig

TORCH = {"vanilla": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
VARIANTS = [
    (cell, is_bidirectional, num_layers)
    for cell in TORCH
    for is_bidirectional in (False, True)
    for num_layers in (1, 2)
]


def build_encoder(cell="gru", is_bidirectional=False, num_layers=1, **changes):
    torch.manual_seed(0)
    config = RnnEncoderConfig(
        cell=cell,
        is_bidirectional=is_bidirectional,
        num_layers=num_layers,
        embedding_dim=4,
        dim=3,
        **changes,
    )
    return RnnEncoder(config, TextSpec(11)).eval()


def run_torch(encoder, embedded):
    """Output of a torch network with the same weights for one sentence."""
    config = encoder.config
    reference = TORCH[config.cell](
        config.embedding_dim,
        config.dim,
        config.num_layers,
        batch_first=True,
        bidirectional=config.is_bidirectional,
    )
    reference.load_state_dict(encoder.recurrence.state_dict())
    return reference(embedded)


@pytest.fixture(params=VARIANTS, ids=lambda v: f"{v[0]}-{'both' if v[1] else 'one'}-{v[2]}")
def encoder(request):
    return build_encoder(*request.param)


def test_states_equal_torch_on_each_sentence_alone(encoder, sentences):
    memory = encoder(sentences.source, sentences.mask)
    for row, length in enumerate(sentences.lengths):
        source, _ = sentences.alone(row)
        expected, _ = run_torch(encoder, encoder.embedding(source))
        assert torch.allclose(memory.states[row, :length], expected[0], atol=1e-6)


def test_final_states_equal_torch_on_each_sentence_alone(encoder, sentences):
    memory = encoder(sentences.source, sentences.mask)
    num_directions = 2 if encoder.config.is_bidirectional else 1
    for row in range(3):
        source, _ = sentences.alone(row)
        _, last = run_torch(encoder, encoder.embedding(source))
        parts = last if encoder.config.cell == "lstm" else (last,)
        for layer, final in enumerate(memory.final):
            assert len(final) == len(parts)
            for tensor, part in zip(final, parts, strict=True):
                pair = part[layer * num_directions : (layer + 1) * num_directions, 0]
                assert torch.allclose(tensor[row], pair.flatten(), atol=1e-6)


def test_memory_has_the_declared_width(encoder, sentences):
    assert encoder(sentences.source, sentences.mask).states.shape == (3, 7, encoder.memory_dim)


def test_memory_keeps_mask_and_tokens(sentences):
    memory = build_encoder()(sentences.source, sentences.mask)
    assert torch.equal(memory.mask, sentences.mask)
    assert torch.equal(memory.tokens, sentences.source)


def test_both_directions_are_concatenated(sentences):
    encoder = build_encoder(is_bidirectional=True)
    one_way = build_encoder()
    one_way.embedding.load_state_dict(encoder.embedding.state_dict())
    weights = encoder.recurrence.state_dict()
    one_way.recurrence.load_state_dict(
        {name: weights[name] for name in one_way.recurrence.state_dict()}
    )
    states = encoder(sentences.source, sentences.mask).states
    assert torch.allclose(
        states[..., :3], one_way(sentences.source, sentences.mask).states, atol=1e-6
    )


@pytest.mark.parametrize("is_bidirectional", [False, True], ids=["one", "both"])
def test_last_context_is_the_final_state_of_each_direction(sentences, is_bidirectional):
    encoder = build_encoder(is_bidirectional=is_bidirectional)
    memory = encoder(sentences.source, sentences.mask)
    for row, length in enumerate(sentences.lengths):
        forward = memory.states[row, length - 1, :3]
        backward = memory.states[row, 0, 3:]
        assert torch.allclose(memory.summary[row], torch.cat([forward, backward]), atol=1e-6)


@pytest.mark.parametrize(
    ("context", "by_hand"),
    [("mean", lambda states: states.mean(0)), ("max", lambda states: states.max(0).values)],
)
def test_context_is_taken_over_the_real_positions(sentences, context, by_hand):
    memory = build_encoder(context=context)(sentences.source, sentences.mask)
    for row, length in enumerate(sentences.lengths):
        expected = by_hand(memory.states[row, :length])
        assert torch.allclose(memory.summary[row], expected, atol=1e-6)


@pytest.mark.parametrize("cell", TORCH)
def test_states_of_a_reversed_source_are_in_source_order(sentences, cell):
    encoder = build_encoder(cell=cell, is_reversed=True)
    memory = encoder(sentences.source, sentences.mask)
    for row, length in enumerate(sentences.lengths):
        # The words last to first, then the end token.
        order = [*range(length - 2, -1, -1), length - 1]
        read = sentences.source[row : row + 1, order]
        expected, _ = run_torch(encoder, encoder.embedding(read))
        for step, position in enumerate(order):
            assert torch.allclose(memory.states[row, position], expected[0, step], atol=1e-6)


def test_reversed_source_ends_in_its_end_token(sentences):
    memory = build_encoder(is_reversed=True)(sentences.source, sentences.mask)
    for row, length in enumerate(sentences.lengths):
        assert torch.allclose(memory.summary[row], memory.states[row, length - 1], atol=1e-6)


def test_reversed_memory_keeps_the_tokens_in_source_order(sentences):
    memory = build_encoder(is_reversed=True)(sentences.source, sentences.mask)
    assert torch.equal(memory.tokens, sentences.source)


def test_source_of_one_token_can_be_reversed():
    source, mask = torch.tensor([[3]]), torch.tensor([[True]])
    straight = build_encoder()(source, mask).states
    assert torch.equal(build_encoder(is_reversed=True)(source, mask).states, straight)


def test_dropout_is_active_in_training_only(sentences):
    encoder = build_encoder(dropout=0.5)
    given = sentences.source, sentences.mask
    assert torch.equal(encoder(*given).states, encoder(*given).states)
    encoder.train()
    assert not torch.equal(encoder(*given).states, encoder(*given).states)


@pytest.mark.parametrize("name", ["embedding_dim", "dim", "num_layers"])
def test_sizes_are_at_least_one(name):
    with pytest.raises(ConfigError, match=rf"^`{name}` must be at least 1, but is 0\.$"):
        RnnEncoderConfig(**{name: 0})


@pytest.mark.parametrize("dropout", [-0.1, 1.0])
def test_dropout_has_limits(dropout):
    with pytest.raises(
        ConfigError, match=rf"^`dropout` must be between 0.0 and 0.99, but is {dropout}"
    ):
        RnnEncoderConfig(dropout=dropout)
