import math
from functools import partial

import numpy as np
import pytest
import torch

from regard.models.interfaces import State
from regard.search.sampling import (
    FILTERS,
    build_filters,
    keep_min_p,
    keep_top_k,
    keep_top_p,
    keep_typical,
    sample,
    scale,
)
from regard.search.settings import SearchConfig

START, END = 9, 3
NUM_SAMPLES = 4000


class FlatScorer:
    """Scorer with one fixed distribution per sentence."""

    device = torch.device("cpu")

    def __init__(self, *distributions):
        self.log_probs = torch.tensor(distributions).log()
        self.batch = len(distributions)

    def start(self, beams, max_length=None):
        return State({}, torch.zeros(self.batch * beams, 0))

    def step(self, tokens, state):
        return self.log_probs.repeat_interleave(len(tokens) // self.batch, dim=0), state


def draw_samples(scorer, *limits, num_samples=1, sample_keys=None, **settings):
    return sample(
        scorer,
        start=START,
        end=END,
        max_lengths=torch.tensor(limits),
        config=SearchConfig(**({"temperature": 1.0} | settings)),
        num_samples=num_samples,
        sample_keys=sample_keys,
    )


def counts(found, vocab):
    sampled = torch.tensor([hypothesis.tokens[0] for hypothesis in found])
    return torch.bincount(sampled, minlength=vocab).double()


def assert_sampled_from(found, expected):
    """Pearson's test: far beyond the 0.9999 quantile for six degrees of freedom is 40."""
    expected = torch.tensor(expected, dtype=torch.double) * len(found)
    observed = counts(found, len(expected))
    assert torch.equal(observed == 0, expected == 0)
    possible = expected > 0
    distance = (observed - expected)[possible] ** 2 / expected[possible]
    assert distance.sum() < 40


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, (0.4, 0.3, 0.2, 0.1)),
        ({"temperature": 0.5}, (0.16 / 0.3, 0.09 / 0.3, 0.04 / 0.3, 0.01 / 0.3)),
        ({"top_k": 2}, (4 / 7, 3 / 7, 0.0, 0.0)),
        ({"top_p": 0.8}, (4 / 9, 3 / 9, 2 / 9, 0.0)),
        ({"min_p": 0.6}, (4 / 7, 3 / 7, 0.0, 0.0)),
        ({"top_k": 3, "top_p": 0.5}, (4 / 7, 3 / 7, 0.0, 0.0)),
    ],
    ids=str,
)
def test_samples_follow_the_distribution(settings, expected):
    scorer = FlatScorer((0.4, 0.3, 0.2, 0.1))
    (found,) = draw_samples(scorer, 1, num_samples=NUM_SAMPLES, **settings)
    assert_sampled_from(found, expected)


@pytest.mark.parametrize(
    "sample_keys",
    [None, [number * 2**32 for number in range(NUM_SAMPLES)]],
    ids=["indices", "large keys"],
)
def test_samples_of_many_sentences_follow_the_distribution(sample_keys):
    scorer = FlatScorer(*[(0.4, 0.3, 0.2, 0.1)] * NUM_SAMPLES)
    found = draw_samples(scorer, *[1] * NUM_SAMPLES, sample_keys=sample_keys)
    assert_sampled_from([best for (best,) in found], (0.4, 0.3, 0.2, 0.1))


def test_samples_of_many_steps_follow_the_distribution():
    (((*_, found),),) = [draw_samples(FlatScorer((0.5, 0.3, 0.2, 0.0)), NUM_SAMPLES)]
    assert len(found.tokens) == NUM_SAMPLES
    observed = torch.bincount(torch.tensor(found.tokens)) / NUM_SAMPLES
    assert observed.tolist() == pytest.approx([0.5, 0.3, 0.2], abs=0.03)


def test_impossible_tokens_are_never_sampled():
    (found,) = draw_samples(FlatScorer((0.0, 0.5, 0.0, 0.5, 0.0)), 1, num_samples=NUM_SAMPLES)
    assert {hypothesis.tokens for hypothesis in found} == {(1,), (3,)}


@pytest.mark.parametrize(("noise", "expected"), [(0.0, 1), (math.nextafter(1.0, 0.0), 4)])
def test_extreme_noise_samples_the_first_and_the_last_possible_token(monkeypatch, noise, expected):
    class ConstantGenerator:
        def random(self, length):
            return np.full(length, noise)

    monkeypatch.setattr(np.random, "default_rng", lambda seed: ConstantGenerator())
    third = 1 / 3
    ((found,),) = draw_samples(FlatScorer((0.0, third, third, 0.0, third, 0.0)), 1)
    assert found.tokens == (expected,)


def test_samples_do_not_depend_on_other_sentences(tree_scorer, lecture_tree):
    other = {(): (0.1, 0.2, 0.3, 0.4)}
    trees, limits, sample_keys = [lecture_tree, other, lecture_tree], [6, 2, 9], [7, 1, 8]
    together = draw_samples(tree_scorer(*trees), *limits, num_samples=5, sample_keys=sample_keys)
    for row in range(3):
        (alone,) = draw_samples(
            tree_scorer(trees[row]),
            limits[row],
            num_samples=5,
            sample_keys=sample_keys[row : row + 1],
        )
        assert alone == together[row]


def test_first_samples_do_not_depend_on_their_number(tree_scorer, lecture_tree):
    (two,) = draw_samples(tree_scorer(lecture_tree), 9, num_samples=2)
    (five,) = draw_samples(tree_scorer(lecture_tree), 9, num_samples=5)
    assert five[:2] == two


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(({"seed": 1}, [0]), ({"seed": 2}, [0])), (({}, [0]), ({}, [1])), (({}, None), ({}, [3]))],
    ids=["seed", "key", "index"],
)
def test_other_seeds_and_keys_give_other_samples(ours, theirs):
    scorer = FlatScorer((0.25, 0.25, 0.5, 0.0))
    found = [
        draw_samples(scorer, 50, sample_keys=sample_keys, **settings)
        for settings, sample_keys in (ours, theirs)
    ]
    assert found[0][0][0].tokens != found[1][0][0].tokens


def test_samples_of_a_sentence_differ():
    (found,) = draw_samples(FlatScorer((0.25, 0.25, 0.5, 0.0)), 50, num_samples=8)
    assert len({hypothesis.tokens for hypothesis in found}) == 8


@pytest.mark.parametrize("settings", [{}, {"temperature": 3.0}, {"top_k": 2, "temperature": 0.3}])
def test_log_probability_is_the_scorers(tree_scorer, lecture_tree, settings):
    (found,) = draw_samples(tree_scorer(lecture_tree), 3, num_samples=20, **settings)
    for hypothesis in found:
        expected = [
            lecture_tree.get(hypothesis.tokens[:step], (0.25,) * 4)[token]
            for step, token in enumerate(hypothesis.tokens)
        ]
        assert [math.exp(step) for step in hypothesis.step_log_probs] == pytest.approx(expected)
        assert hypothesis.value == hypothesis.log_prob == sum(hypothesis.step_log_probs)


def test_sample_ends_with_the_end_token_or_at_its_limit(tree_scorer, lecture_tree):
    limits = range(20)
    sampled = draw_samples(tree_scorer(*[lecture_tree] * 20), *limits)
    for (found,), limit in zip(sampled, limits, strict=True):
        assert END not in found.tokens[:-1]
        assert len(found.tokens) == limit or found.tokens[-1] == END


VOCAB = 7
SOME = {"temperature": 0.7, "top_k": 3, "top_p": 0.6, "min_p": 0.3, "typical_p": 0.5}


@pytest.fixture(params=range(5))
def log_probs(request):
    """Six distributions with forbidden tokens, not renormalised."""
    generator = torch.Generator().manual_seed(request.param)
    values = (torch.randn(6, VOCAB, generator=generator) * 2).log_softmax(1)
    return values.masked_fill(torch.tensor([1, 0, 0, 0, 0, 0, 1]).bool(), -torch.inf)


def normalise(row):
    total = sum(math.exp(value) for value in row)
    return [math.exp(value) / total for value in row]


def kept(log_probs, change):
    """Tokens kept in each row; their log-probabilities must be unchanged."""
    after = change(log_probs)
    is_kept = after.isfinite()
    assert torch.equal(after[is_kept], log_probs[is_kept])
    return [set(row.nonzero().flatten().tolist()) for row in is_kept]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_temperature_is_a_power_of_the_probability(log_probs, temperature):
    for row, after in zip(log_probs, scale(log_probs, temperature), strict=True):
        powers = [prob ** (1 / temperature) for prob in normalise(row.tolist())]
        expected = [power / sum(powers) for power in powers]
        assert normalise(after.tolist()) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("temperature", [1e-30, 1e-300])
def test_lowest_temperature_keeps_the_most_likely_token(log_probs, temperature):
    after = scale(log_probs, temperature).log_softmax(1).exp()
    assert torch.equal(after.argmax(1), log_probs.argmax(1))
    assert torch.equal(after.amax(1), torch.ones(6))


@pytest.mark.parametrize("num", [1, 2, 5, 50])
def test_top_k_keeps_the_most_likely_tokens(log_probs, num):
    expected = [
        {t for t in sorted(range(VOCAB), key=lambda t: -row[t])[:num] if row[t] > -math.inf}
        for row in log_probs.tolist()
    ]
    assert kept(log_probs, partial(keep_top_k, value=num)) == expected


@pytest.mark.parametrize("prob", [0.0, 0.3, 0.8, 0.99])
def test_top_p_keeps_the_smallest_set_with_the_probability(log_probs, prob):
    expected = []
    for row in map(normalise, log_probs.tolist()):
        nucleus, mass = set(), 0.0
        for token in sorted(range(VOCAB), key=lambda token: -row[token]):
            if nucleus and mass >= prob:
                break
            nucleus.add(token)
            mass += row[token]
        expected.append(nucleus)
    assert kept(log_probs, partial(keep_top_p, value=prob)) == expected


@pytest.mark.parametrize("prob", [0.01, 0.3, 1.0])
def test_min_p_keeps_tokens_likely_relative_to_the_maximum(log_probs, prob):
    expected = [
        {token for token in range(VOCAB) if row[token] >= prob * max(row)}
        for row in map(normalise, log_probs.tolist())
    ]
    assert kept(log_probs, partial(keep_min_p, value=prob)) == expected


@pytest.mark.parametrize("prob", [0.0, 0.3, 0.8, 0.99])
def test_typical_keeps_the_tokens_nearest_to_the_entropy(log_probs, prob):
    expected = []
    for row in map(normalise, log_probs.tolist()):
        possible = [token for token in range(VOCAB) if row[token] > 0]
        entropy = -sum(row[token] * math.log(row[token]) for token in possible)
        typical, mass = set(), 0.0
        for token in sorted(possible, key=lambda t: abs(-math.log(row[t]) - entropy)):
            if typical and mass >= prob:
                break
            typical.add(token)
            mass += row[token]
        expected.append(typical)
    assert kept(log_probs, partial(keep_typical, value=prob)) == expected


def test_typical_may_drop_the_most_likely_token():
    log_probs = torch.tensor([[0.4, *[0.05] * 12]]).log()
    assert 0 not in kept(log_probs, partial(keep_typical, value=0.5))[0]


NEUTRAL = {name: neutral for name, (_, neutral) in FILTERS.items()}


def test_neutral_values_give_no_filters():
    assert build_filters(SearchConfig(**NEUTRAL)) == []


@pytest.mark.parametrize("name", FILTERS)
def test_every_setting_has_its_filter(name):
    (change,) = build_filters(SearchConfig(**(NEUTRAL | {name: SOME[name]})))
    assert change.func is FILTERS[name][0] and change.keywords == {"value": SOME[name]}


def test_temperature_comes_before_the_other_filters():
    assert [change.func for change in build_filters(SearchConfig(**SOME))] == [
        scale,
        keep_top_k,
        keep_top_p,
        keep_min_p,
        keep_typical,
    ]
