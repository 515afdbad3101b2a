import pytest
import torch

from regard.models.build import ModelConfig
from regard.models.decoders import DECODERS
from regard.models.encoders.rnn import RnnEncoderConfig
from regard.models.interfaces import Decoder, Memory, State
from regard.models.seq2seq import EncoderDecoder


@pytest.fixture(params=DECODERS, ids=lambda settings: settings.kind)
def model(request, build, tiny_decoders):
    decoder = next(config for config in tiny_decoders.values() if type(config) is request.param)
    return build(ModelConfig(encoder=RnnEncoderConfig(embedding_dim=4, dim=3), decoder=decoder))


def inputs(sentences):
    return sentences.source, sentences.mask, sentences.targets


def test_full_teacher_forcing_uses_the_true_tokens(model, sentences):
    logits, _ = model.step(
        sentences.targets, model.start(model.encode(sentences.source, sentences.mask))
    )
    assert torch.equal(model(*inputs(sentences), teacher_forcing=1.0).logits, logits)


def test_nearly_full_teacher_forcing_gives_the_same_step_by_step(model, sentences):
    # Numbers drawn from [0, 1) in single precision are always below this one.
    nearly = 1.0 - 2**-53
    sampled = model(*inputs(sentences), teacher_forcing=nearly).logits
    assert torch.allclose(sampled, model(*inputs(sentences)).logits, atol=1e-5)


def test_no_teacher_forcing_uses_the_most_likely_tokens(model, sentences):
    state = model.start(model.encode(sentences.source, sentences.mask))
    tokens, expected = sentences.targets[:, :1], []
    for _ in range(sentences.targets.shape[1]):
        logits, state = model.step(tokens, state)
        expected.append(logits)
        tokens = logits.argmax(-1)
    sampled = model(*inputs(sentences), teacher_forcing=0.0).logits
    assert torch.allclose(sampled, torch.cat(expected, 1), atol=1e-6)


def test_predicted_tokens_differ_from_the_true_ones(model, sentences):
    sampled = model(*inputs(sentences), teacher_forcing=0.0).logits
    assert not torch.allclose(sampled, model(*inputs(sentences)).logits)


def test_sampled_forward_pass_trains_every_weight(model, sentences):
    model(*inputs(sentences), teacher_forcing=0.5).logits.square().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


class Parrot(Decoder):
    """Decoder that always predicts 7 and records its inputs."""

    def __init__(self):
        super().__init__()
        self.given = []

    def start(self, memory, *, beams=1, max_length=None):
        return State({}, ())

    def step(self, tokens, state):
        self.given.append(tokens)
        return torch.eye(9)[7].expand(*tokens.shape, 9), state


@pytest.mark.parametrize("ratio", [0.25, 0.8])
def test_fraction_of_true_tokens_is_the_ratio(ratio):
    torch.manual_seed(0)
    parrot = Parrot()
    memory = Memory(states=None, mask=None, summary=None)
    model = EncoderDecoder(lambda source, mask: memory, parrot)
    model(None, None, torch.full((30, 101), 4), teacher_forcing=ratio)
    given = torch.cat(parrot.given, dim=1)
    assert (given[:, 0] == 4).all()
    assert set(given.unique().tolist()) == {4, 7}
    assert (given[:, 1:] == 4).float().mean().item() == pytest.approx(ratio, abs=0.03)
