"""Two roads to one result, for models of every kind that write together."""

import pytest
import torch

from regard.models.decoders import DECODERS
from regard.models.ensemble import Ensemble
from regard.search.beam import beam_search
from regard.search.forced import target_log_probs
from regard.search.greedy import greedy
from regard.search.scorer import ModelScorer
from regard.search.search import search
from regard.search.settings import SearchConfig

PAD, START, END = 0, 2, 3
LIMITS = [9, 8, 4]
WAYS = {
    "greedy": ({"beams": 1}, 1),
    "beam": ({"beams": 4}, 4),
    "sample": ({"temperature": 1.0}, 4),
    "rules": ({"beams": 3, "no_repeat_ngram": 2, "repetition_penalty": 1.3}, 3),
}


@pytest.fixture(params=[*DECODERS, None], ids=lambda kind: kind.kind if kind else "all")
def model(request, tiny_configs, build):
    """For every decoder of the table one with a transformer beside it; and all together."""
    configs = list(tiny_configs.values())
    kinds = DECODERS if request.param is None else [request.param]
    chosen = [next(config for config in configs if type(config.decoder) is kind) for kind in kinds]
    chosen.append(tiny_configs["transformer-transformer"])
    # In double precision, so that two roads part only where one is wrong.
    with torch.inference_mode():
        yield Ensemble([build(config, seed).double() for seed, config in enumerate(chosen)])


@pytest.fixture
def logits(model, sentences):
    """What the models say all at once."""
    return model(sentences.source, sentences.mask, sentences.targets).logits


def start(model, sentences, beams=1):
    return model.start(model.encode(sentences.source, sentences.mask), beams=beams)


def find(model, source, mask, *, way, limits, numbers):
    settings, num_best = way
    return search(
        ModelScorer(model, model.encode(source, mask), banned=(PAD, START)),
        start=START,
        end=END,
        max_lengths=torch.tensor(limits),
        config=SearchConfig(**settings),
        num_best=num_best,
        sample_keys=numbers,
    )


def find_all(model, sentences, way):
    return find(model, sentences.source, sentences.mask, way=way, limits=LIMITS, numbers=[11, 5, 8])


def same(ours, theirs):
    return torch.allclose(ours, theirs, atol=1e-5)


def test_step_by_step_equals_all_at_once(model, sentences, logits):
    state, pieces = start(model, sentences), []
    for tokens in sentences.targets.split(1, dim=1):
        piece, state = model.step(tokens, state)
        pieces.append(piece)
    assert same(torch.cat(pieces, dim=1), logits)


def test_batched_equals_alone(model, sentences, logits):
    for row in range(3):
        alone = model(*sentences.alone(row), sentences.targets[row : row + 1]).logits
        assert same(alone, logits[row : row + 1])


def test_beams_of_a_sentence_equal_the_sentence(model, sentences, logits):
    targets = sentences.targets.repeat_interleave(2, dim=0)
    beams, _ = model.step(targets, start(model, sentences, beams=2))
    assert same(beams, logits.repeat_interleave(2, dim=0))


def test_beam_of_one_equals_greedy(model, sentences):
    scorer = ModelScorer(model, model.encode(sentences.source, sentences.mask), banned=(PAD, START))
    common = {"start": START, "end": END, "max_lengths": torch.tensor(LIMITS)}
    beams = beam_search(scorer, **common, config=SearchConfig(beams=1), num_best=1)
    found = greedy(scorer, **common)
    assert [best.tokens for (best,) in beams] == [one.tokens for one in found]


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_batched_search_equals_alone(model, sentences, way):
    for row, found in enumerate(find_all(model, sentences, way)):
        (alone,) = find(
            model,
            *sentences.alone(row),
            way=way,
            limits=LIMITS[row : row + 1],
            numbers=[(11, 5, 8)[row]],
        )
        assert [one.tokens for one in alone] == [one.tokens for one in found]


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_searched_log_probability_equals_the_forced_one(model, sentences, way):
    for row, group in enumerate(find_all(model, sentences, way)):
        for one in group:
            targets = torch.tensor([[START, *one.tokens]])
            forced = target_log_probs(model, *sentences.alone(row), targets=targets)[0]
            assert one.step_log_probs == pytest.approx(forced.tolist(), abs=1e-5)
