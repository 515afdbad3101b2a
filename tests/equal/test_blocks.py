"""Transformer blocks can be wrapped from outside: all computation is in a call of a block."""

import copy

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from regard.core.specs import AudioSpec, ImageSpec, TextImageSpec, TextSpec, VideoSpec
from regard.models.decoders import (
    PrefixDecoder,
    PrefixDecoderConfig,
    TransformerDecoder,
    TransformerDecoderConfig,
)
from regard.models.encoders.bert import (
    AlbertEncoder,
    AlbertEncoderConfig,
    BertEncoder,
    BertEncoderConfig,
)
from regard.models.encoders.hybrid import HybridEncoder, HybridEncoderConfig
from regard.models.encoders.resnet import ResnetEncoderConfig
from regard.models.encoders.sentences import SentencesEncoder, SentencesEncoderConfig
from regard.models.encoders.speech_transformer import SpeechEncoder, SpeechEncoderConfig
from regard.models.encoders.text_image import TextImageEncoder, TextImageEncoderConfig
from regard.models.encoders.transformer import TransformerEncoder, TransformerEncoderConfig
from regard.models.encoders.video import VideoEncoder, VideoEncoderConfig
from regard.models.encoders.vit import VitEncoder, VitEncoderConfig
from regard.models.generators import AttentionGenerator, AttentionGeneratorConfig
from regard.models.interfaces import Memory
from regard.models.language_model import TransformerLanguageConfig, build_language_model
from regard.models.transformer import TransformerBlock, TransformerStack

SIZES = {"dim": 8, "num_layers": 2, "num_heads": 2, "feed_forward_dim": 12, "dropout": 0.0}
RESNET = ResnetEncoderConfig(widths=(8,), blocks=(1,), stem="medium")
VOCAB = 11
TOKENS = torch.tensor([[4, 5, 6, 3, 7, 8, 3], [9, 4, 3, 5, 3, 0, 0]])
MASK = TOKENS != 0
IMAGE = (1, 8, 8)


def states_of(encoder):
    def run(model, inputs):
        memory = model(inputs, MASK)
        return memory.states.float().sum() + memory.summary.float().square().sum()

    return encoder, run


def make_memory():
    states = torch.randn(2, 4, 6, generator=torch.Generator().manual_seed(1))
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    return Memory(states, mask, states.mean(1), tokens=TOKENS[:, :4])


def decode_target(model, inputs):
    output = model(inputs, make_memory())
    return output.logits.logsumexp(-1).sum() + sum(output.losses.values())


def make_images(*shape):
    return torch.randn(2, *shape, generator=torch.Generator().manual_seed(2))


def cases():
    """Return models with blocks, functions from a model to one number, and inputs, by name."""
    text, image = TransformerEncoderConfig(**SIZES), make_images(*IMAGE)
    decoder = {"memory_dim": 6}
    joined = TextImageEncoderConfig(text=text, image=RESNET, num_layers=2, num_heads=2, dropout=0.0)
    return {
        "transformer": (*states_of(TransformerEncoder(text, TextSpec(VOCAB))), TOKENS),
        "windowed": (
            *states_of(
                TransformerEncoder(TransformerEncoderConfig(window=2, **SIZES), TextSpec(VOCAB))
            ),
            TOKENS,
        ),
        "bert": (*states_of(BertEncoder(BertEncoderConfig(**SIZES), TextSpec(VOCAB))), TOKENS),
        "albert": (
            *states_of(AlbertEncoder(AlbertEncoderConfig(**SIZES), TextSpec(VOCAB))),
            TOKENS,
        ),
        "sentences": (
            *states_of(
                SentencesEncoder(SentencesEncoderConfig(num_rounds=2, **SIZES), TextSpec(VOCAB))
            ),
            TOKENS,
        ),
        "vit": (*states_of(VitEncoder(VitEncoderConfig(**SIZES), ImageSpec(*IMAGE))), image),
        "hybrid": (
            *states_of(HybridEncoder(HybridEncoderConfig(grid=RESNET, **SIZES), ImageSpec(*IMAGE))),
            image,
        ),
        "speech": (
            *states_of(SpeechEncoder(SpeechEncoderConfig(channels=3, **SIZES), AudioSpec(5))),
            make_images(7, 5),
        ),
        "video": (
            *states_of(
                VideoEncoder(
                    VideoEncoderConfig(image=RESNET, num_heads=2, dropout=0.0),
                    VideoSpec(3, ImageSpec(*IMAGE)),
                )
            ),
            make_images(3, *IMAGE),
        ),
        "text_image": (
            *states_of(TextImageEncoder(joined, TextImageSpec(TextSpec(VOCAB), ImageSpec(*IMAGE)))),
            (TOKENS, image),
        ),
        "decoder": (
            TransformerDecoder(TransformerDecoderConfig(**SIZES), VOCAB, **decoder),
            decode_target,
            TOKENS,
        ),
        "prefix": (
            PrefixDecoder(PrefixDecoderConfig(source_weight=0.5, **SIZES), VOCAB, **decoder),
            decode_target,
            TOKENS,
        ),
        "language_model": (
            build_language_model(TransformerLanguageConfig(window=3, **SIZES), vocab_size=VOCAB),
            lambda model, inputs: model(inputs).logits.logsumexp(-1).sum(),
            TOKENS,
        ),
        "generator": (
            AttentionGenerator(
                AttentionGeneratorConfig(**SIZES), memory_dim=6, layout=None, shape=IMAGE
            ),
            lambda model, inputs: model(inputs).square().sum(),
            make_memory(),
        ),
    }


NAMES = (
    "transformer windowed bert albert sentences vit hybrid speech video text_image decoder prefix "
    "language_model generator"
).split()


@pytest.fixture(params=NAMES)
def case(request):
    torch.manual_seed(0)
    model, run, inputs = cases()[request.param]
    return model.eval(), run, inputs


class Wrapped(nn.Module):
    """A block that can only be called, as a sharded or an offloaded one."""

    def __init__(self, block):
        super().__init__()
        self.inner = block

    def forward(self, *inputs, **options):
        return self.inner(*inputs, **options)


class Checkpointed(Wrapped):
    def forward(self, *inputs, **options):
        return checkpoint(self.inner, *inputs, use_reentrant=False, **options)


def stacks(model):
    return [module for module in model.modules() if isinstance(module, TransformerStack)]


def wrap(model, kind):
    """A copy of the model with every block inside a wrapper."""
    wrapped = copy.deepcopy(model)
    for stack in stacks(wrapped):
        for number, block in enumerate(stack):
            stack[number] = kind(block)
    return wrapped


def gradients(model, run, inputs):
    loss = run(model, inputs)
    loss.backward()
    named = model.named_parameters()
    return loss.detach(), {name.replace("inner.", ""): each.grad for name, each in named}


def test_all_blocks_are_in_stacks(case):
    model, _, _ = case
    in_stacks = [block for stack in stacks(model) for block in stack]
    assert in_stacks == [each for each in model.modules() if isinstance(each, TransformerBlock)]
    assert in_stacks


def test_forward_hooks_of_all_blocks_fire(case):
    model, run, inputs = case
    blocks = [block for stack in stacks(model) for block in stack]
    fired = []
    for block in blocks:
        block.register_forward_hook(lambda block, _, output: fired.append((block, output.shape)))
    run(model, inputs)
    assert {block for block, _ in fired} == set(blocks)
    assert all(len(shape) == 3 and shape[-1] == 8 for _, shape in fired)


def test_wrapped_blocks_give_the_same_loss(case):
    model, run, inputs = case
    loss, expected = gradients(model, run, inputs)
    other, found = gradients(wrap(model, Wrapped), run, inputs)
    assert torch.equal(loss, other)
    assert expected.keys() == found.keys()


def test_checkpointed_blocks_give_the_same_loss_and_gradients(case):
    model, run, inputs = case
    checkpointed = wrap(model.train(), Checkpointed)
    loss, expected = gradients(model, run, inputs)
    other, found = gradients(checkpointed, run, inputs)
    assert torch.equal(loss, other)
    for name, gradient in expected.items():
        same = gradient is found[name] is None or torch.equal(gradient, found[name])
        assert same, name


@pytest.mark.filterwarnings("ignore")
@torch.no_grad()
def test_compiled_blocks_give_the_same_result(case):
    model, run, inputs = case
    expected = run(model, inputs)
    compiled = copy.deepcopy(model)
    for stack in stacks(compiled):
        for block in stack:
            block.compile(backend="eager")
    assert torch.allclose(run(compiled, inputs), expected, atol=1e-5)
    torch._dynamo.reset()


@pytest.mark.parametrize("teacher_forced", [1, 3])
def test_checkpointed_steps_give_the_same_gradients(teacher_forced):
    torch.manual_seed(0)
    model = TransformerDecoder(TransformerDecoderConfig(**SIZES), VOCAB, memory_dim=6)

    def run(decoder, tokens):
        state, total = decoder.start(make_memory()), 0.0
        for piece in tokens.split(teacher_forced, dim=1):
            logits, state = decoder.step(piece, state)
            total = total + logits.logsumexp(-1).sum()
        return total

    class Delegating(Checkpointed):
        @property
        def cross_attention(self):
            return self.inner.cross_attention

    checkpointed = wrap(model, Delegating)
    loss, expected = gradients(model, run, TOKENS)
    other, found = gradients(checkpointed, run, TOKENS)
    assert torch.equal(loss, other)
    assert all(torch.allclose(expected[name], found[name], atol=1e-6) for name in expected)


def test_checkpointed_steps_within_a_window_give_the_same_gradients():
    torch.manual_seed(0)
    config = TransformerLanguageConfig(window=3, **SIZES)
    model = build_language_model(config, vocab_size=VOCAB)

    def run(model, tokens):
        state, total = model.start(len(tokens)), 0.0
        for piece in tokens.split(2, dim=1):
            logits, state = model.step(piece, state)
            total = total + logits.logsumexp(-1).sum()
        return total

    loss, expected = gradients(model, run, TOKENS)
    other, found = gradients(wrap(model, Checkpointed), run, TOKENS)
    assert torch.equal(loss, other)
    assert all(torch.allclose(expected[name], found[name], atol=1e-6) for name in expected)
