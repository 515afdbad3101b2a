import torch

from regard.models.decoders import SutskeverDecoder, SutskeverDecoderConfig


def build_decoder(**changes):
    torch.manual_seed(0)
    config = SutskeverDecoderConfig(embedding_dim=3, cell="gru", **changes)
    return SutskeverDecoder(config, 9, memory_dim=4).eval()


def test_initial_state_is_the_final_encoder_state_of_equal_width(memory):
    state = build_decoder(dim=4).start(memory)
    assert state.per_hypothesis["layers"][0][0] is memory.final[-1][0]


def test_initial_state_is_repeated_for_every_beam(memory):
    state = build_decoder(dim=4).start(memory, beams=2)
    assert torch.equal(
        state.per_hypothesis["layers"][0][0], memory.final[-1][0].repeat_interleave(2, dim=0)
    )


def test_logits_are_the_recurrence_from_the_initial_state(memory, gru_by_hand):
    decoder = build_decoder(dim=4)
    targets = torch.tensor([[2, 5, 8]] * 3)
    logits = decoder(targets, memory).logits
    for row in range(3):
        hidden = memory.final[-1][0][row]
        for position, token in enumerate(targets[row]):
            hidden = gru_by_hand(
                decoder.recurrence.sequence, decoder.embedding.weight[token], hidden
            )
            expected = decoder.output.weight @ hidden + decoder.output.bias
            assert torch.allclose(logits[row, position], expected, atol=1e-5)


def test_state_per_source_is_empty(memory):
    assert build_decoder(dim=4).start(memory).per_source == {}
