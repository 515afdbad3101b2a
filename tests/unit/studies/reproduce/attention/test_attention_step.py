import pytest
import torch

from regard.attention.recording import record
from regard.models.decoders.bahdanau import BahdanauDecoder, BahdanauDecoderConfig
from regard.models.decoders.luong import LuongDecoder, LuongDecoderConfig
from regard.models.interfaces import Memory
from regard.models.recurrent import Recurrence, RecurrentConfig
from regard.studies.reproduce.attention.attention_step import (
    EMBEDDING,
    INPUT_MAP,
    STATE,
    STATE_MAP,
    trace_bahdanau,
    trace_luong,
    worked_step,
)


def test_worked_step_has_the_weights_of_the_lectures():
    step = worked_step()
    assert step["weights"].tolist() == pytest.approx([0.3, 0.5, 0.1, 0.1])
    assert step["context"].tolist() == pytest.approx([1.134, 0.4], abs=5e-4)


def test_next_state_is_a_step_of_the_recurrent_cell():
    step = worked_step()
    config = RecurrentConfig(cell="vanilla", embedding_dim=2, dim=2)
    cell = Recurrence(config, 4).requires_grad_(False)
    cell.sequence.weight_ih_l0.copy_(INPUT_MAP)
    cell.sequence.weight_hh_l0.copy_(STATE_MAP)
    for bias in (cell.sequence.bias_ih_l0, cell.sequence.bias_hh_l0):
        bias.zero_()
    expected, _ = cell.step(torch.cat([EMBEDDING, step["context"]])[None], ((STATE[None],),))
    assert torch.allclose(step["next"], expected[0])


DECODERS = {
    "bahdanau": (BahdanauDecoder, BahdanauDecoderConfig, trace_bahdanau),
    "luong": (LuongDecoder, LuongDecoderConfig, trace_luong),
}


@pytest.mark.parametrize("name", DECODERS)
def test_trace_equals_the_decoder(name):
    kind, config, trace = DECODERS[name]
    torch.manual_seed(0)
    decoder = kind(config(embedding_dim=4, dim=6, attention_dim=5), 9, memory_dim=6).eval()
    states = torch.randn(1, 5, 6)
    final = ((torch.randn(1, 6),),)
    memory = Memory(states, torch.ones(1, 5).bool(), states[:, -1], final=final)
    tokens = torch.tensor([2, 7, 3])
    with torch.no_grad():
        with record(decoder) as recorded:
            logits = decoder(tokens[None], memory).logits[0]
        ours = trace(decoder, memory, tokens)
    assert torch.allclose(ours.logits, logits, atol=1e-6)
    assert torch.allclose(ours.weights, recorded.stack()[0, 0, 0], atol=1e-6)
