"""Activation checkpointing changes memory, not results."""

import copy

import pytest
import torch
from torch import nn

from regard.core.specs import ImageSpec, TextSpec
from regard.models.decoders import (
    ConvolutionDecoder,
    ConvolutionDecoderConfig,
    PrefixDecoder,
    PrefixDecoderConfig,
    TransformerDecoder,
    TransformerDecoderConfig,
)
from regard.models.encoders.convolutional import ConvolutionEncoder, ConvolutionEncoderConfig
from regard.models.encoders.resnet import ResnetEncoder, ResnetEncoderConfig
from regard.models.encoders.transformer import TransformerEncoder, TransformerEncoderConfig
from regard.models.interfaces import Memory
from regard.models.language_model import TransformerLanguageConfig, build_language_model
from regard.training.activations import checkpoint_blocks

VOCAB = 11
SIZES = {"dim": 8, "num_layers": 3, "num_heads": 2, "feed_forward_dim": 12, "dropout": 0.3}
TOKENS = torch.tensor([[4, 5, 6, 3, 7, 8, 3], [9, 4, 3, 5, 3, 0, 0]])
MASK = TOKENS != 0
IMAGES = torch.randn(2, 1, 8, 8, generator=torch.Generator().manual_seed(2))
STATES = torch.randn(2, 4, 8, generator=torch.Generator().manual_seed(1))
MEMORY = Memory(STATES, torch.ones(2, 4, dtype=torch.bool), STATES.mean(1), tokens=TOKENS[:, :4])


def encode_text(model):
    return model(TOKENS, MASK).states.square().sum()


def encode_image(model):
    return model(IMAGES, None).states.square().sum()


def decode(model):
    output = model(TOKENS, MEMORY)
    return output.logits.logsumexp(-1).sum() + sum(output.losses.values())


CASES = {
    "encoder": (
        lambda: TransformerEncoder(TransformerEncoderConfig(**SIZES), TextSpec(VOCAB)),
        encode_text,
    ),
    "decoder": (
        lambda: TransformerDecoder(TransformerDecoderConfig(**SIZES), VOCAB, memory_dim=8),
        decode,
    ),
    "prefix": (
        lambda: PrefixDecoder(PrefixDecoderConfig(source_weight=0.5, **SIZES), VOCAB, memory_dim=8),
        decode,
    ),
    "language model": (
        lambda: build_language_model(TransformerLanguageConfig(**SIZES), vocab_size=VOCAB),
        lambda model: model(TOKENS).logits.logsumexp(-1).sum(),
    ),
    "convolutional encoder": (
        lambda: ConvolutionEncoder(
            ConvolutionEncoderConfig(dim=8, num_layers=3, dropout=0.3), TextSpec(VOCAB)
        ),
        encode_text,
    ),
    "convolutional decoder": (
        lambda: ConvolutionDecoder(
            ConvolutionDecoderConfig(dim=8, num_layers=3, dropout=0.3), VOCAB, memory_dim=8
        ),
        decode,
    ),
    "residual network": (
        lambda: ResnetEncoder(
            ResnetEncoderConfig(widths=(8, 8), blocks=(2, 1), stem="small"), ImageSpec(1, 8, 8)
        ),
        encode_image,
    ),
}


@pytest.fixture(params=CASES)
def case(request):
    """A model, a copy with checkpointed blocks, and a function from a model to a loss."""
    torch.manual_seed(0)
    build, run = CASES[request.param]
    model = build().train()
    checkpointed = copy.deepcopy(model)
    checkpoint_blocks(checkpointed)
    return model, checkpointed, run


def train_step(model, run):
    """Compute gradients; return the loss and the number of bytes saved for the backward pass."""
    saved = {}

    def pack(tensor):
        saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    torch.manual_seed(1)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = run(model)
    loss.backward()
    return loss, sum(saved.values())


def test_loss_gradients_and_buffers_are_equal(case):
    model, checkpointed, run = case
    loss, _ = train_step(model, run)
    other, _ = train_step(checkpointed, run)
    assert torch.equal(loss, other)
    found = dict(checkpointed.named_parameters())
    for name, parameter in model.named_parameters():
        gradient = found[name].grad
        assert parameter.grad is gradient is None or torch.equal(parameter.grad, gradient), name
    for name, buffer in model.named_buffers():
        assert torch.equal(buffer, checkpointed.get_buffer(name)), name


def test_random_numbers_after_a_step_are_equal(case):
    model, checkpointed, run = case
    train_step(model, run)
    expected = torch.rand(3)
    train_step(checkpointed, run)
    assert torch.equal(torch.rand(3), expected)


def test_fewer_bytes_are_saved_for_the_backward_pass(case):
    model, checkpointed, run = case
    assert train_step(checkpointed, run)[1] < train_step(model, run)[1]


def test_evaluation_and_names_of_weights_are_unchanged(case):
    model, checkpointed, run = case
    assert list(model.state_dict()) == list(checkpointed.state_dict())
    with torch.no_grad():
        assert torch.equal(run(model.eval()), run(checkpointed.eval()))


def test_model_without_blocks_is_warned_about(caplog):
    checkpoint_blocks(nn.Linear(2, 2))
    assert "`checkpoint_activations` has no effect" in caplog.text
