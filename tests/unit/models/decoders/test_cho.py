import torch

from regard.models.decoders import ChoDecoder, ChoDecoderConfig


def test_context_is_an_input_of_every_step(memory, gru_by_hand, maxout_by_hand):
    torch.manual_seed(0)
    decoder = ChoDecoder(ChoDecoderConfig(embedding_dim=3, dim=6), 9, memory_dim=4).eval()
    targets = torch.tensor([[2, 5, 8]] * 3)
    logits = decoder(targets, memory).logits
    for row in range(3):
        context = memory.summary[row]
        hidden = decoder.bridge.maps[0](context).tanh()
        for position, token in enumerate(targets[row]):
            word = decoder.embedding.weight[token]
            hidden = gru_by_hand(decoder.recurrence.sequence, torch.cat([word, context]), hidden)
            readout = maxout_by_hand(decoder.readout, hidden, word, context)
            expected = decoder.output.weight @ readout + decoder.output.bias
            assert torch.allclose(logits[row, position], expected, atol=1e-5)


def test_context_is_stored_once_per_sentence(memory):
    decoder = ChoDecoder(ChoDecoderConfig(embedding_dim=3, dim=6), 9, memory_dim=4).eval()
    state = decoder.start(memory, beams=3)
    assert state.per_source["context"] is memory.summary
    logits, _ = decoder.step(torch.full((9, 1), 5), state)
    once, _ = decoder.step(torch.full((3, 1), 5), decoder.start(memory))
    assert torch.allclose(logits, once.repeat_interleave(3, dim=0), atol=1e-6)


def test_lecture_form_copies_the_last_state_and_has_a_linear_output(memory, gru_by_hand):
    torch.manual_seed(0)
    config = ChoDecoderConfig(start="copy", readout="linear", embedding_dim=3, dim=4)
    decoder = ChoDecoder(config, 9, memory_dim=4).eval()
    targets = torch.tensor([[2, 5, 8]] * 3)
    logits = decoder(targets, memory).logits
    for row in range(3):
        hidden = memory.final[-1][0][row]
        for position, token in enumerate(targets[row]):
            inputs = torch.cat([decoder.embedding.weight[token], memory.summary[row]])
            hidden = gru_by_hand(decoder.recurrence.sequence, inputs, hidden)
            expected = decoder.output.weight @ hidden + decoder.output.bias
            assert torch.allclose(logits[row, position], expected, atol=1e-5)
    assert not list(decoder.bridge.parameters()) + list(decoder.readout.parameters())
