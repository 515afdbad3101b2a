"""Two roads, one result, for every encoder and decoder and what they can be told."""

import dataclasses
import itertools
from functools import partial

import pytest
import torch

from regard.attention.cache import KeyValueCache
from regard.attention.positions import POSITIONS
from regard.attention.recording import record
from regard.attention.scores import SCORES, DotScore
from regard.attention.spans import SPANS
from regard.models.bottlenecks import (
    PlainBottleneckConfig,
    RoundedBottleneckConfig,
    VariationalBottleneckConfig,
)
from regard.models.build import ModelConfig
from regard.models.decoders import (
    DECODERS,
    BahdanauDecoderConfig,
    ConvolutionDecoderConfig,
    LuongDecoderConfig,
    PrefixDecoderConfig,
    TransformerDecoderConfig,
)
from regard.models.decoders.xu2015 import XuDecoderConfig
from regard.models.encoders import ENCODERS
from regard.models.encoders.bert import AlbertEncoderConfig, BertEncoderConfig
from regard.models.encoders.bottleneck import BottleneckEncoderConfig
from regard.models.encoders.convolutional import ConvolutionEncoderConfig
from regard.models.encoders.embedding import EmbeddingEncoderConfig
from regard.models.encoders.hybrid import HybridEncoderConfig
from regard.models.encoders.pyramidal_lstm import PyramidalLstmEncoderConfig
from regard.models.encoders.resnet import ResnetEncoderConfig
from regard.models.encoders.rnn import RnnEncoderConfig
from regard.models.encoders.sentences import SentencesEncoderConfig
from regard.models.encoders.speech_transformer import SpeechEncoderConfig
from regard.models.encoders.tables import TokenEncoderConfig
from regard.models.encoders.text_image import TextImageEncoderConfig
from regard.models.encoders.transformer import TransformerEncoderConfig
from regard.models.encoders.video import OVER_TIME, VideoEncoderConfig
from regard.models.encoders.vit import VitEncoderConfig
from regard.models.heads.copying import PointerConfig
from regard.models.interfaces import map_tensors, reorder
from regard.models.layers import FEED_FORWARDS, NORMS
from regard.models.recurrent import RecurrentConfig
from regard.search.beam import beam_search
from regard.search.forced import target_log_probs
from regard.search.greedy import greedy
from regard.search.scorer import ModelScorer
from regard.search.settings import SearchConfig
from regard.training.checkpoint import load_weights, save_weights

PAD, START, END = 0, 2, 3
CELLS = ("vanilla", "gru", "lstm")


SIZES = {"embedding_dim": 5, "dim": 6}
ATTENTION_SIZES = {"max_source": 20, "attention_dim": 4, **SIZES}


def rnn_encoders():
    """Every cell, direction and depth; order of reading and context change along the way."""
    variants = itertools.product(CELLS, (False, True), (1, 2))
    for number, (cell, is_bidirectional, num_layers) in enumerate(variants):
        yield RnnEncoderConfig(
            cell=cell,
            is_bidirectional=is_bidirectional,
            num_layers=num_layers,
            is_reversed=number % 5 in (1, 2),
            context=("last", "mean", "max")[number % 3],
            embedding_dim=4,
            dim=3,
        )


def recurrent_decoders(settings):
    """Every cell and depth."""
    for num_layers, cell in itertools.product((1, 2), CELLS):
        yield settings(cell=cell, num_layers=num_layers, **SIZES)


def convolutions(settings, kernels):
    """Every way to tell the order, with changing kernels."""
    for kernel, positions in zip(kernels, ("none", "sinusoidal", "learned"), strict=True):
        yield settings(kernel=kernel, positions=positions, num_layers=2, max_length=40, **SIZES)


def transformers(settings):
    """Every norm and feed-forward layer; positions and key heads change along the way."""
    variants = itertools.product(NORMS, FEED_FORWARDS)
    for number, ((norm, feed_forward), positions) in enumerate(
        zip(variants, itertools.cycle(POSITIONS), strict=False)
    ):
        yield settings(
            norm=norm,
            feed_forward=feed_forward,
            is_norm_first=number % 2 == 0,
            positions=positions,
            num_key_heads=(0, 2, 1)[number % 3],
            dim=8,
            num_heads=4,
            num_layers=2,
            feed_forward_dim=5,
            max_length=220,
        )


def far_readers():
    """With a window, with a pooled memory, and with both."""
    for (window, pooling), positions in zip(
        ((1, 1), (0, 2), (2, 3)), ("rotary", "learned", "alibi"), strict=True
    ):
        yield TransformerEncoderConfig(
            window=window,
            pooling=pooling,
            positions=positions,
            dim=8,
            num_heads=4,
            num_layers=2,
            feed_forward_dim=5,
            max_length=40,
        )


def berts(settings):
    """With two segments, one and none; how order is told changes along the way."""
    for num_segments, positions in enumerate(("rotary", "sinusoidal", "learned")):
        yield settings(
            num_segments=num_segments,
            positions=positions,
            is_norm_first=num_segments == 1,
            dim=8,
            num_heads=4,
            num_layers=2,
            feed_forward_dim=5,
            max_length=40,
        )


def sentence_readers():
    """Every kind of position: added, turning and none; any token may end a sentence."""
    for num_rounds, positions in enumerate(("sinusoidal", "learned", "rotary", "none"), start=1):
        yield SentencesEncoderConfig(
            positions=positions,
            num_rounds=num_rounds,
            is_norm_first=num_rounds % 2 == 0,
            has_question=num_rounds > 2,
            separator=6 + num_rounds,
            max_words=2,
            dim=8,
            num_heads=4,
            num_layers=1,
            feed_forward_dim=5,
        )


def vits():
    """Both summaries with both kinds of positions and both orders of norms."""
    for number, (summary, positions) in enumerate(
        itertools.product(("class", "mean"), ("learned", "sincos2d"))
    ):
        yield VitEncoderConfig(
            summary=summary,
            positions=positions,
            is_norm_first=number % 3 > 0,
            patch=2,
            dim=8,
            num_heads=4,
            num_layers=2,
            feed_forward_dim=5,
        )


def narrow_readers():
    """Every bottleneck, around states and summaries of texts, images and videos."""
    of_texts = RnnEncoderConfig(is_bidirectional=True, embedding_dim=4, dim=3)
    of_images = ResnetEncoderConfig(widths=(4,), blocks=(1,))
    for encoder, bottleneck, of in (
        (of_texts, VariationalBottleneckConfig(dim=3), "summary"),
        (of_texts, PlainBottleneckConfig(dim=3, activation="tanh"), "states"),
        (of_images, RoundedBottleneckConfig(dim=3, levels=9), "states"),
        (VideoEncoderConfig(image=of_images, num_layers=1), PlainBottleneckConfig(dim=3), "states"),
    ):
        yield BottleneckEncoderConfig(encoder=encoder, bottleneck=bottleneck, of=of)


def speech_readers():
    """Every kind of position that is added, turning or a bias, with both orders of norms."""
    for number, positions in enumerate(("sinusoidal", "rotary", "alibi")):
        yield SpeechEncoderConfig(
            positions=positions,
            is_norm_first=number != 1,
            channels=3,
            dim=8,
            num_heads=4,
            num_layers=2,
            feed_forward_dim=5,
        )


ENCODER_CASES = {
    RnnEncoderConfig: list(rnn_encoders()),
    ConvolutionEncoderConfig: list(convolutions(ConvolutionEncoderConfig, (1, 3, 5))),
    TransformerEncoderConfig: [
        *transformers(TransformerEncoderConfig),
        *far_readers(),
    ],
    BertEncoderConfig: list(berts(BertEncoderConfig)),
    AlbertEncoderConfig: list(berts(partial(AlbertEncoderConfig, embedding_dim=6))),
    EmbeddingEncoderConfig: [EmbeddingEncoderConfig(dim=8), EmbeddingEncoderConfig(dim=5)],
    SentencesEncoderConfig: list(sentence_readers()),
    VitEncoderConfig: list(vits()),
    ResnetEncoderConfig: [
        ResnetEncoderConfig(stem=stem, widths=(3, 4), blocks=(1, 2))
        for stem in ("small", "medium", "large")
    ],
    HybridEncoderConfig: [
        HybridEncoderConfig(
            grid=ResnetEncoderConfig(widths=(3, 4), blocks=(1, 1)),
            is_norm_first=is_norm_first,
            dim=8,
            num_heads=4,
            num_layers=2,
            feed_forward_dim=5,
        )
        for is_norm_first in (False, True)
    ],
    PyramidalLstmEncoderConfig: [
        PyramidalLstmEncoderConfig(dim=3, num_layers=num_layers) for num_layers in (1, 2, 4)
    ],
    SpeechEncoderConfig: list(speech_readers()),
    TextImageEncoderConfig: [
        TextImageEncoderConfig(text=text, image=ResnetEncoderConfig(widths=(4,), blocks=(1,)))
        for text in (*itertools.islice(rnn_encoders(), 2), TransformerEncoderConfig(dim=8))
    ],
    VideoEncoderConfig: [
        VideoEncoderConfig(
            image=ResnetEncoderConfig(widths=(4,), blocks=(1,)), over_time=name, num_layers=1
        )
        for name in OVER_TIME
    ],
    BottleneckEncoderConfig: list(narrow_readers()),
}
DECODER_CASES = {
    settings: list(recurrent_decoders(settings))
    for settings in DECODERS
    if issubclass(settings, RecurrentConfig)
} | {
    ConvolutionDecoderConfig: list(convolutions(ConvolutionDecoderConfig, (1, 2, 3))),
    TransformerDecoderConfig: list(transformers(TransformerDecoderConfig)),
    PrefixDecoderConfig: list(transformers(PrefixDecoderConfig)),
}


def pairs():
    """Every encoder with every kind of decoder, whose variants take turns."""
    for settings in DECODERS:
        decoders = itertools.cycle(DECODER_CASES[settings])
        for kind in ENCODERS:
            for encoder in ENCODER_CASES[kind]:
                yield encoder, next(decoders)


def attentive_pairs():
    """Every score, span and feeding with some encoder."""
    some = itertools.cycle(ENCODER_CASES[RnnEncoderConfig])
    for score in SCORES:
        yield next(some), BahdanauDecoderConfig(score=score, **ATTENTION_SIZES)
    for number, (score, span, is_input_fed) in enumerate(
        itertools.product(SCORES, SPANS, (True, False))
    ):
        cell, num_layers = CELLS[(number + number // 6) % 3], 1 + number // 6 % 2
        shape = {"cell": cell, "num_layers": num_layers, "window": 2, **ATTENTION_SIZES}
        yield (
            next(some),
            LuongDecoderConfig(score=score, span=span, is_input_fed=is_input_fed, **shape),
        )


TOLD_APART_BY = (
    "kind", "cell", "num_layers", "is_bidirectional", "is_reversed", "context", "kernel",
    "positions", "norm", "feed_forward", "is_norm_first", "num_key_heads", "score", "span",
    "is_input_fed", "window", "pooling", "summary", "stem",
)  # fmt: skip


def name_side(config):
    """The settings that tell the cases of a kind apart; of booleans, those that are true."""
    if isinstance(config, TextImageEncoderConfig):
        return f"joined-{name_side(config.text)}"
    if isinstance(config, BottleneckEncoderConfig):
        return f"{config.bottleneck.kind}-{config.of}-{name_side(config.encoder)}"
    told = {name: getattr(config, name) for name in TOLD_APART_BY if hasattr(config, name)}
    words = [name.removeprefix("is_") if value is True else value for name, value in told.items()]
    return "-".join(str(word) for word in words if word is not False)


def fit(encoder, decoder):
    """Scores that are products need a memory as wide as the decoder's states."""
    if not issubclass(SCORES[decoder.score], DotScore):
        return encoder
    dim = decoder.dim // (2 if encoder.is_bidirectional else 1)
    return dataclasses.replace(encoder, dim=dim)


def pointers():
    """Every kind of decoder that can copy, with and without coverage, over encoders in turn."""
    # Tokens that share a state cannot be copied.
    encoders = itertools.cycle(
        [config for config in cases if getattr(config, "pooling", 1) == 1][-1]
        for settings, cases in ENCODER_CASES.items()
        if issubclass(settings, TokenEncoderConfig)
    )
    for settings in DECODERS:
        for number, decoder in enumerate(DECODER_CASES[settings]):
            if not issubclass(settings, PrefixDecoderConfig | XuDecoderConfig):
                yield next(encoders), decoder, PointerConfig(dim=4, coverage=number % 2)


CASES = {
    f"{name_side(encoder)}-{name_side(decoder)}": ModelConfig(encoder=encoder, decoder=decoder)
    for encoder, decoder in (
        *pairs(),
        *((fit(*pair), pair[1]) for pair in attentive_pairs()),
    )
} | {
    f"{name_side(encoder)}-{name_side(decoder)}-{copying.kind}-{copying.coverage}": ModelConfig(
        encoder=encoder, decoder=decoder, copying=copying
    )
    for encoder, decoder, copying in pointers()
}


@pytest.fixture(params=CASES.values(), ids=CASES, scope="module")
def config(request):
    return request.param


@pytest.fixture
def sentences(config, inputs_of):
    return inputs_of(config)


@pytest.fixture
def model(config, build, wake):
    # In double precision, so that large logits, as a model without norms has them, agree as well.
    with torch.inference_mode():
        yield wake(build(config).double())


@pytest.fixture
def logits(model, sentences):
    """What the model says all at once."""
    return model(sentences.source, sentences.mask, sentences.targets).logits


def start(model, sentences, beams=1):
    return model.start(model.encode(sentences.source, sentences.mask), beams=beams)


def take_steps(model, targets, state):
    pieces = []
    for tokens in targets.split(1, dim=1):
        piece, state = model.step(tokens, state)
        pieces.append(piece)
    return torch.cat(pieces, dim=1)


def search(model, source, mask, *, limits, beams, num_best=1):
    return beam_search(
        ModelScorer(model, model.encode(source, mask), banned=(PAD, START)),
        start=START,
        end=END,
        max_lengths=torch.tensor(limits),
        config=SearchConfig(beams=beams),
        num_best=num_best,
    )


def same(ours, theirs):
    return torch.allclose(ours, theirs, atol=1e-5)


def test_step_by_step_equals_all_at_once(model, sentences, logits):
    assert same(take_steps(model, sentences.targets, start(model, sentences)), logits)


def test_prefix_and_then_steps_equals_all_at_once(model, sentences, logits):
    prefix, state = model.step(sentences.targets[:, :3], start(model, sentences))
    rest = take_steps(model, sentences.targets[:, 3:], state)
    assert same(torch.cat([prefix, rest], dim=1), logits)


def test_batched_equals_alone(model, sentences, logits):
    for row in range(3):
        alone = model(*sentences.alone(row), sentences.targets[row : row + 1]).logits
        assert same(alone, logits[row : row + 1])


def test_padded_equals_unpadded(model, sentences, logits):
    assert same(model(*sentences.padded(4), sentences.targets).logits, logits)


def test_beams_of_a_sentence_equal_the_sentence(model, sentences, logits):
    targets = sentences.targets.repeat_interleave(2, dim=0)
    beams, _ = model.step(targets, start(model, sentences, beams=2))
    assert same(beams, logits.repeat_interleave(2, dim=0))


def test_beam_of_one_equals_greedy(model, sentences):
    scorer = ModelScorer(model, model.encode(sentences.source, sentences.mask), banned=(PAD, START))
    limits = [9, 8, 4]
    found = greedy(scorer, start=START, end=END, max_lengths=torch.tensor(limits))
    beams = search(model, sentences.source, sentences.mask, limits=limits, beams=1)
    assert [best.tokens for (best,) in beams] == [hypothesis.tokens for hypothesis in found]


def test_batched_search_equals_alone(model, sentences):
    limits = [9, 8, 4]
    together = search(model, sentences.source, sentences.mask, limits=limits, beams=4, num_best=4)
    for row, found in enumerate(together):
        (alone,) = search(
            model, *sentences.alone(row), limits=limits[row : row + 1], beams=4, num_best=4
        )
        assert [best.tokens for best in alone] == [best.tokens for best in found]


def test_searched_log_probability_equals_the_forced_one(model, sentences):
    found = search(model, sentences.source, sentences.mask, limits=[9, 8, 4], beams=3, num_best=3)
    for row, hypotheses in enumerate(found):
        for hypothesis in hypotheses:
            targets = torch.tensor([[START, *hypothesis.tokens]])
            forced = target_log_probs(model, *sentences.alone(row), targets=targets)
            assert same(forced[0], torch.tensor(hypothesis.step_log_probs))


def test_recorded_equals_unrecorded(model, sentences, logits):
    with record(model):
        recorded = model(sentences.source, sentences.mask, sentences.targets).logits
    assert same(recorded, logits)


MONOTONIC = {
    name: config
    for name, config in CASES.items()
    if getattr(config.decoder, "span", "") == "monotonic"
}


@pytest.mark.parametrize("config", MONOTONIC.values(), ids=MONOTONIC)
def test_monotonic_choices_differ_and_never_go_back(model, sentences):
    with record(model) as maps:
        model(sentences.source, sentences.mask, sentences.targets)
    weights = maps.stack()[:, 0, 0]  # one choice a step, which is all there is
    assert ((weights == 0) | (weights == 1)).all()
    assert (weights.sum(-1) == 1).all()
    choices = weights.argmax(-1)
    assert (choices.diff(dim=1) >= 0).all()
    assert len(choices.unique()) > 1


def tensors(nested):
    """All tensors of a state, those visible in caches included."""
    found = []

    def add(part):
        found.extend(part.visible if isinstance(part, KeyValueCache) else [part])
        return part

    map_tensors(nested, add)
    return found


@pytest.mark.parametrize("max_length", [None, 9], ids=["growing", "preallocated"])
@torch.no_grad()
def test_state_may_be_continued_twice(model, sentences, max_length):
    memory = model.encode(sentences.source, sentences.mask)
    state = model.start(memory, beams=2, max_length=max_length)
    tokens = sentences.targets.repeat_interleave(2, dim=0)
    first, after = model.step(tokens[:, :1], state)
    before = [tensor.clone() for tensor in tensors(after.per_hypothesis)]
    rows = torch.tensor([1, 1, 2, 2, 5, 4])
    model.step(tokens[:, 1:3], reorder(after, rows))
    one, _ = model.step(tokens[:, 1:3], after)
    _, other = model.step(tokens[:, 3:4], after)
    model.step(tokens[:, 1:2], other)
    again, _ = model.step(tokens[:, 1:3], after)
    assert torch.equal(again, one)
    kept = zip(before, tensors(after.per_hypothesis), strict=True)
    assert all(torch.equal(*pair) for pair in kept)
    assert torch.equal(model.step(tokens[:, :1], state)[0], first)


@torch.no_grad()
def test_reordered_state_equals_reading_anew(model, sentences):
    memory = model.encode(sentences.source, sentences.mask)
    tokens = sentences.targets.repeat_interleave(2, dim=0)
    rows = torch.tensor([1, 1, 3, 2, 5, 5])
    _, state = model.step(tokens[:, :2], model.start(memory, beams=2, max_length=4))
    ours, _ = model.step(tokens[:, 2:3], reorder(state, rows))
    _, state = model.step(tokens[rows, :2], model.start(memory, beams=2))
    theirs, _ = model.step(tokens[:, 2:3], state)
    assert torch.allclose(ours, theirs, atol=1e-5)


def test_saved_and_loaded_equals_the_original(config, build, sentences, tmp_path):
    model, other = build(config), build(config, seed=1)
    inputs = sentences.source, sentences.mask, sentences.targets
    save_weights(model, tmp_path / "model.safetensors")
    load_weights(other, tmp_path / "model.safetensors")
    with torch.no_grad():
        assert torch.equal(other(*inputs).logits, model(*inputs).logits)
