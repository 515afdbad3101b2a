"""Two roads, one result, for every recurrent encoder and decoder."""

import dataclasses
import itertools

import pytest
import torch

from regard.attention.scores import SCORES
from regard.models.build import ModelConfig
from regard.models.decoders import DECODERS, BahdanauDecoderConfig, LuongDecoderConfig
from regard.models.encoders import RnnEncoderConfig
from regard.models.interfaces import map_tensors, reorder
from regard.search.beam import SearchConfig, beam_search
from regard.search.force import force
from regard.search.greedy import greedy
from regard.search.scorer import ModelScorer
from regard.training.checkpoint import load_weights, save_weights

PAD, START, END = 0, 2, 3
CELLS = ("vanilla", "gru", "lstm")


def encoders():
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


SIZES = {"embedding_dim": 5, "dim": 6}
ATTENTION_SIZES = {"max_source": 20, "attention_dim": 4, **SIZES}


def pairs():
    """Every encoder with every decoder, then every score, reach and feeding with some encoder."""
    for settings in DECODERS:
        for number, encoder in enumerate(encoders()):
            cell, num_layers = CELLS[number % 3], 1 + number // 3 % 2
            yield encoder, settings(cell=cell, num_layers=num_layers, **SIZES)
    some = itertools.cycle(encoders())
    for score in SCORES:
        yield next(some), BahdanauDecoderConfig(score=score, **ATTENTION_SIZES)
    for number, (score, reach, is_input_fed) in enumerate(
        itertools.product(SCORES, ("global", "local_m", "local_p"), (True, False))
    ):
        cell, num_layers = CELLS[(number + number // 6) % 3], 1 + number // 6 % 2
        shape = {"cell": cell, "num_layers": num_layers, "window": 2, **ATTENTION_SIZES}
        yield (
            next(some),
            LuongDecoderConfig(score=score, reach=reach, is_input_fed=is_input_fed, **shape),
        )


def name_case(encoder, decoder):
    words = [encoder.cell, "both" if encoder.is_bidirectional else "one", encoder.num_layers]
    words += [encoder.context, "reversed"] if encoder.is_reversed else [encoder.context]
    words += [decoder.kind, decoder.cell, decoder.num_layers]
    if isinstance(decoder, BahdanauDecoderConfig | LuongDecoderConfig):
        words.append(decoder.score)
    if isinstance(decoder, LuongDecoderConfig):
        words += [decoder.reach, "fed" if decoder.is_input_fed else "unfed"]
    return "-".join(map(str, words))


def fit(encoder, decoder):
    """Dot scores need a memory as wide as the decoder's states."""
    if "dot" not in getattr(decoder, "score", ""):
        return encoder
    dim = decoder.dim // (2 if encoder.is_bidirectional else 1)
    return dataclasses.replace(encoder, dim=dim)


CASES = {
    name_case(encoder, decoder): ModelConfig(encoder=fit(encoder, decoder), decoder=decoder)
    for encoder, decoder in pairs()
}


@pytest.fixture(params=CASES.values(), ids=CASES, scope="module")
def config(request):
    return request.param


@pytest.fixture
def model(config, build):
    with torch.inference_mode():
        yield build(config)


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
    padding = torch.full((3, 4), PAD)
    source = torch.cat([sentences.source, padding], dim=1)
    mask = torch.cat([sentences.mask, padding.bool()], dim=1)
    assert same(model(source, mask, sentences.targets).logits, logits)


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
            forced = force(model, *sentences.alone(row), targets=targets)
            assert same(forced[0], torch.tensor(hypothesis.step_log_probs))


def test_state_is_never_changed_in_place(model, sentences):
    state = start(model, sentences, beams=2)
    tokens = sentences.targets.repeat_interleave(2, dim=0)[:, :1]
    first, moved = model.step(tokens, state)
    before = map_tensors(moved.moving, torch.clone)
    model.step(first.argmax(-1), reorder(moved, torch.tensor([1, 1, 2, 2, 5, 4])))
    again, _ = model.step(tokens, state)
    assert torch.equal(again, first)
    kept, given = [], []
    map_tensors(before, lambda tensor: kept.append(tensor) or tensor)
    map_tensors(moved.moving, lambda tensor: given.append(tensor) or tensor)
    assert all(torch.equal(*pair) for pair in zip(kept, given, strict=True))


def test_saved_and_loaded_equals_the_original(config, build, sentences, tmp_path):
    model, other = build(config), build(config, seed=1)
    inputs = sentences.source, sentences.mask, sentences.targets
    save_weights(model, tmp_path / "model.safetensors")
    load_weights(other, tmp_path / "model.safetensors")
    with torch.no_grad():
        assert torch.equal(other(*inputs).logits, model(*inputs).logits)
