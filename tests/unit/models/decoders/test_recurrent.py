import pytest
import torch

from regard.core.errors import ConfigError
from regard.models.decoders import DECODERS
from regard.models.decoders.recurrent import (
    READOUTS,
    STARTS,
    ContextInputConfig,
    CopyBridge,
    DenseBridge,
    FinalStateBridge,
    MaxoutReadout,
    ReadoutKind,
    StartKind,
    StateReadout,
    SummaryBridge,
)
from regard.models.interfaces import Memory
from regard.models.recurrent import RecurrentConfig


def without_lstm(memory):
    final = tuple((hidden,) for hidden, _ in memory.final)
    return Memory(states=memory.states, mask=memory.mask, summary=memory.summary, final=final)


def test_final_states_of_equal_shape_are_copied(memory):
    bridge = FinalStateBridge(RecurrentConfig(cell="lstm", dim=4, num_layers=2), 4)
    layers = bridge(memory)
    for layer, final in zip(layers, memory.final, strict=True):
        assert all(ours is theirs for ours, theirs in zip(layer, final, strict=True))
    assert not list(bridge.parameters())


def test_final_states_of_another_width_have_separate_linear_layers(memory):
    bridge = FinalStateBridge(RecurrentConfig(cell="lstm", dim=6, num_layers=2), 4)
    layers = bridge(memory)
    assert len(bridge.maps) == 4
    for layer in range(2):
        for part in range(2):
            expected = bridge.maps[2 * layer + part](memory.final[layer][part]).tanh()
            assert torch.equal(layers[layer][part], expected)


def test_shallower_decoder_starts_from_the_top(memory):
    bridge = FinalStateBridge(RecurrentConfig(cell="lstm", dim=4), 4)
    assert bridge(memory)[0][0] is memory.final[1][0]


def test_deeper_decoder_starts_its_lower_layers_from_the_lowest(memory):
    bridge = FinalStateBridge(RecurrentConfig(cell="lstm", dim=4, num_layers=4), 4)
    sources = [0, 0, 0, 1]
    assert all(
        layer[0] is memory.final[source][0]
        for layer, source in zip(bridge(memory), sources, strict=True)
    )


def test_gru_decoder_uses_h_of_an_lstm_encoder(memory):
    layers = FinalStateBridge(RecurrentConfig(cell="gru", dim=4), 4)(memory)
    assert len(layers[0]) == 1 and layers[0][0] is memory.final[1][0]


def test_lstm_decoder_uses_h_of_a_gru_encoder_twice(memory):
    layers = FinalStateBridge(RecurrentConfig(cell="lstm", dim=4), 4)(without_lstm(memory))
    assert all(tensor is memory.final[1][0] for tensor in layers[0])


def test_summary_replaces_missing_final_states(memory):
    memory = Memory(states=memory.states, mask=memory.mask, summary=memory.summary)
    layers = FinalStateBridge(RecurrentConfig(cell="gru", dim=4), 4)(memory)
    assert layers[0][0] is memory.summary


def test_summary_bridge_is_a_dense_layer_with_tanh(memory):
    bridge = SummaryBridge(RecurrentConfig(dim=6, num_layers=2), 4)
    for layer, dense in zip(bridge(memory), bridge.maps, strict=True):
        expected = torch.tanh(memory.summary @ dense.weight.T + dense.bias)
        assert torch.allclose(layer[0], expected, atol=1e-6)


def test_lstm_cell_state_starts_at_zero_with_a_summary(memory):
    layers = SummaryBridge(RecurrentConfig(cell="lstm", dim=6), 4)(memory)
    assert torch.equal(layers[0][1], torch.zeros(3, 6))


def test_copied_states_are_the_final_states_of_the_encoder(memory):
    layers = CopyBridge(RecurrentConfig(cell="lstm", dim=4, num_layers=2), 4)(memory)
    for layer, final in zip(layers, memory.final, strict=True):
        assert all(ours is theirs for ours, theirs in zip(layer, final, strict=True))


def test_states_of_another_width_cannot_be_copied():
    message = (
        r"^`decoder\.start` 'copy' needs `decoder\.dim` equal to the width of the encoder states "
        r"\(4\), but it is 6\. Set `decoder\.dim` to 4, or `decoder\.start` to 'tanh'\.$"
    )
    with pytest.raises(ConfigError, match=message):
        CopyBridge(RecurrentConfig(dim=6), 4)


def test_dense_bridge_has_two_layers(memory):
    bridge = DenseBridge(RecurrentConfig(cell="lstm", dim=6, num_layers=2), 4)
    for layer, dense in zip(bridge(memory), bridge.maps, strict=True):
        expected = dense(bridge.hidden_map(memory.summary).tanh()).tanh()
        assert torch.equal(layer[0], expected)
        assert torch.equal(layer[1], torch.zeros(3, 6))


@pytest.mark.parametrize(("kind", "table"), [(StartKind, STARTS), (ReadoutKind, READOUTS)])
def test_tables_have_the_names_of_the_settings(kind, table):
    assert set(kind.__args__) == set(table)


def test_linear_readout_is_the_state():
    states = torch.randn(2, 3)
    config = ContextInputConfig(readout="linear", dim=3, embedding_dim=4)
    assert StateReadout(config, 5)(states, torch.randn(2, 4), torch.randn(2, 5)) is states
    assert config.readout_dim == 3


def test_maxout_takes_the_larger_of_each_pair(maxout_by_hand):
    torch.manual_seed(0)
    readout = MaxoutReadout(RecurrentConfig(dim=3, embedding_dim=4), 5)
    parts = torch.randn(2, 3), torch.randn(2, 4), torch.randn(2, 5)
    result = readout(*parts)
    assert result.shape == (2, 4)
    for row in range(2):
        expected = maxout_by_hand(readout, *(part[row] for part in parts))
        assert torch.allclose(result[row], expected, atol=1e-6)


RECURRENT = [settings for settings in DECODERS if issubclass(settings, RecurrentConfig)]


@pytest.fixture(params=RECURRENT, ids=lambda settings: settings.kind)
def settings(request):
    return request.param


@pytest.mark.parametrize("name", ["embedding_dim", "dim", "num_layers"])
def test_sizes_are_at_least_one(settings, name):
    with pytest.raises(ConfigError, match=rf"^`{name}` must be at least 1, but is 0\.$"):
        settings(**{name: 0})


@pytest.mark.parametrize("dropout", [-0.1, 1.0])
def test_dropout_has_limits(settings, dropout):
    with pytest.raises(ConfigError, match=r"^`dropout` must be between 0\.0 and 0\.99, but is "):
        settings(dropout=dropout)


def test_dropout_works_in_training_only(settings, memory):
    torch.manual_seed(0)
    decoder = DECODERS[settings](settings(embedding_dim=5, dim=6, dropout=0.5), 11, memory_dim=4)
    targets = torch.tensor([[2, 5]] * 3)
    assert not torch.equal(decoder(targets, memory).logits, decoder(targets, memory).logits)
    decoder.eval()
    assert torch.equal(decoder(targets, memory).logits, decoder(targets, memory).logits)
