"""Two roads to one result, for rules, draws and forced beginnings."""

from functools import partial

import pytest
import torch

from regard.models.decoders import DECODERS
from regard.search.beam import beam_search
from regard.search.constraints import forbid_repeats, penalize_repetition
from regard.search.forced import target_log_probs
from regard.search.greedy import greedy
from regard.search.sampling import keep_min_p, keep_top_k, keep_top_p, scale
from regard.search.scorer import ModelScorer
from regard.search.search import search
from regard.search.settings import SearchConfig

PAD, START, END = 0, 2, 3
LIMITS = [9, 8, 5]
PREFIXES = [(4, 4, 5, 4, 4), (), (7, 6, 7)]
WAYS = {
    "greedy": ({"beams": 1}, 1),
    "beam": ({"beams": 4}, 4),
    "sample": ({"temperature": 1.0}, 4),
}


OTHERS = ("luong-monotonic", "bahdanau-lstm-coverage", "transformer-coverage")


@pytest.fixture(params=[*(settings.kind for settings in DECODERS), *OTHERS])
def model(request, tiny_configs, build, wake):
    """A model for every decoder of the table, with the first encoder that goes with it."""
    config = next(config for name, config in tiny_configs.items() if f"-{request.param}" in name)
    # In double precision, so that two roads part only where one is wrong.
    with torch.inference_mode():
        yield wake(build(config).double())


@pytest.fixture(params=WAYS.values(), ids=WAYS)
def way(request):
    return request.param


def find(model, source, mask, *, way, limits, prefixes=None, numbers=None, **settings):
    chosen, num_best = way
    return search(
        ModelScorer(model, model.encode(source, mask), banned=(PAD, START)),
        start=START,
        end=END,
        max_lengths=torch.tensor(limits),
        config=SearchConfig(**chosen, **settings),
        num_best=num_best,
        prefixes=prefixes,
        sample_keys=numbers,
    )


def find_all(model, sentences, way, **settings):
    """All three sentences at once; returns each hypothesis with the row of its sentence."""
    found = find(model, sentences.source, sentences.mask, way=way, limits=LIMITS, **settings)
    assert [len(group) for group in found] == [way[1]] * 3
    return [(row, one) for row, group in enumerate(found) for one in group]


def assert_forced(model, sentences, found):
    """Log-probabilities are those of forced decoding of the same tokens."""
    for row, one in found:
        targets = torch.tensor([[START, *one.tokens]])
        forced = target_log_probs(model, *sentences.alone(row), targets=targets)[0]
        assert one.step_log_probs == pytest.approx(forced.tolist(), abs=1e-5)
        assert one.log_prob == pytest.approx(float(forced.sum()), abs=1e-4)


@pytest.mark.parametrize("length", [1, 2])
def test_no_run_of_tokens_occurs_twice(model, sentences, way, length):
    for _, one in find_all(model, sentences, way, no_repeat_ngram=length, min_length=5):
        runs = [one.tokens[i : i + length] for i in range(len(one.tokens) - length + 1)]
        assert len(set(runs)) == len(runs)


def test_forced_prefix_has_the_forced_log_probability(model, sentences, way):
    found = find_all(model, sentences, way, prefixes=PREFIXES)
    for row, one in found:
        assert one.tokens[: len(PREFIXES[row])] == PREFIXES[row]
    assert_forced(model, sentences, found)


def test_all_rules_together_leave_the_forced_log_probability(model, sentences, way):
    rules = {"no_repeat_ngram": 2, "min_length": 4, "repetition_penalty": 1.3}
    found = find_all(model, sentences, way, prefixes=PREFIXES, **rules)
    assert_forced(model, sentences, found)


def test_batched_equals_alone(model, sentences, way):
    settings = {"no_repeat_ngram": 2, "min_length": 3, "repetition_penalty": 1.3}
    numbers = [11, 5, 8]
    together = find(
        model,
        sentences.source,
        sentences.mask,
        way=way,
        limits=LIMITS,
        prefixes=PREFIXES,
        numbers=numbers,
        **settings,
    )
    for row, found in enumerate(together):
        (alone,) = find(
            model,
            *sentences.alone(row),
            way=way,
            limits=LIMITS[row : row + 1],
            prefixes=PREFIXES[row : row + 1],
            numbers=numbers[row : row + 1],
            **settings,
        )
        assert [one.tokens for one in alone] == [one.tokens for one in found]


def test_forcing_what_is_found_anyway_changes_nothing(model, sentences):
    (best, *_) = zip(
        *find(model, sentences.source, sentences.mask, way=WAYS["greedy"], limits=LIMITS),
        strict=True,
    )
    prefixes = [one.tokens[: len(one.tokens) // 2] for one in best]
    again = find_all(model, sentences, WAYS["greedy"], prefixes=prefixes)
    assert [one for _, one in again] == list(best)


def test_lowest_temperature_and_only_the_likeliest_are_greedy(model, sentences):
    expected = [one.tokens for _, one in find_all(model, sentences, WAYS["greedy"])]
    for settings in ({"temperature": 1e-6}, {"temperature": 1.0, "top_k": 1}):
        drawn = find_all(model, sentences, (settings, 1))
        assert [one.tokens for _, one in drawn] == expected


def test_without_rules_search_is_the_search_itself(model, sentences):
    scorer = ModelScorer(model, model.encode(sentences.source, sentences.mask), banned=(PAD, START))
    common = {"start": START, "end": END, "max_lengths": torch.tensor(LIMITS)}
    ours = [one for _, one in find_all(model, sentences, WAYS["greedy"])]
    assert ours == greedy(scorer, **common)
    beams = beam_search(scorer, **common, config=SearchConfig(beams=4), num_best=4)
    ours = [one for _, one in find_all(model, sentences, WAYS["beam"])]
    assert ours == [one for group in beams for one in group]


def hugging_face(name, *arguments):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    return getattr(transformers, name)(*arguments)


@pytest.fixture(params=range(3))
def numbers(request):
    generator = torch.Generator().manual_seed(request.param)
    log_probs = (torch.randn(8, 40, generator=generator) * 2).log_softmax(1)
    return log_probs, torch.randint(0, 6, (8, 12), generator=generator)


@pytest.mark.parametrize(
    ("rule", "theirs"),
    [
        (partial(forbid_repeats, length=1), ("NoRepeatNGramLogitsProcessor", 1)),
        (partial(forbid_repeats, length=2), ("NoRepeatNGramLogitsProcessor", 2)),
        (partial(forbid_repeats, length=3), ("NoRepeatNGramLogitsProcessor", 3)),
        (partial(penalize_repetition, penalty=1.7), ("RepetitionPenaltyLogitsProcessor", 1.7)),
    ],
    ids=lambda case: case[0] if isinstance(case, tuple) else None,
)
def test_rules_are_those_of_hugging_face(numbers, rule, theirs):
    log_probs, written = numbers
    assert torch.equal(rule(log_probs, written), hugging_face(*theirs)(written, log_probs.clone()))


@pytest.mark.parametrize(
    ("reshape", "theirs"),
    [
        (partial(scale, value=0.6), ("TemperatureLogitsWarper", 0.6)),
        (partial(keep_top_k, value=5), ("TopKLogitsWarper", 5)),
        (partial(keep_top_p, value=0.7), ("TopPLogitsWarper", 0.7)),
        (partial(keep_min_p, value=0.1), ("MinPLogitsWarper", 0.1)),
    ],
    ids=lambda case: case[0] if isinstance(case, tuple) else None,
)
def test_reshaped_distributions_are_those_of_hugging_face(numbers, reshape, theirs):
    log_probs, written = numbers
    expected = hugging_face(*theirs)(written, log_probs.clone()).softmax(1)
    assert torch.allclose(reshape(log_probs).softmax(1), expected, atol=1e-6)
