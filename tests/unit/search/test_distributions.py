import math

import pytest
import torch

from regard.search.distributions import (
    NO_CHANGE,
    RESHAPES,
    MinP,
    Temperature,
    TopK,
    TopP,
    build_reshapes,
)
from regard.search.settings import SearchConfig

VOCAB = 7
SOME = {"temperature": 0.7, "top_k": 3, "top_p": 0.6, "min_p": 0.3}


@pytest.fixture(params=range(5))
def log_probs(request):
    """Six distributions, some tokens of which are forbidden without giving up their share."""
    generator = torch.Generator().manual_seed(request.param)
    values = (torch.randn(6, VOCAB, generator=generator) * 2).log_softmax(1)
    return values.masked_fill(torch.tensor([1, 0, 0, 0, 0, 0, 1]).bool(), -torch.inf)


def shares(row):
    total = sum(math.exp(value) for value in row)
    return [math.exp(value) / total for value in row]


def kept(log_probs, reshape):
    """The tokens left in each row; they must have the numbers they had."""
    after = reshape(log_probs)
    is_kept = after.isfinite()
    assert torch.equal(after[is_kept], log_probs[is_kept])
    return [set(row.nonzero().flatten().tolist()) for row in is_kept]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_temperature_is_a_power_of_the_probability(log_probs, temperature):
    for row, after in zip(log_probs, Temperature(temperature)(log_probs), strict=True):
        powers = [share ** (1 / temperature) for share in shares(row.tolist())]
        expected = [power / sum(powers) for power in powers]
        assert shares(after.tolist()) == pytest.approx(expected, abs=1e-6)


def test_lowest_temperature_leaves_the_likeliest(log_probs):
    after = Temperature(1e-30)(log_probs).log_softmax(1).exp()
    assert torch.equal(after.argmax(1), log_probs.argmax(1))
    assert torch.equal(after.amax(1), torch.ones(6))


@pytest.mark.parametrize("num", [1, 2, 5, 50])
def test_top_k_keeps_the_likeliest(log_probs, num):
    expected = [
        {t for t in sorted(range(VOCAB), key=lambda t: -row[t])[:num] if row[t] > -math.inf}
        for row in log_probs.tolist()
    ]
    assert kept(log_probs, TopK(num)) == expected


@pytest.mark.parametrize("share", [0.0, 0.3, 0.8, 0.99])
def test_top_p_keeps_the_fewest_that_have_the_probability(log_probs, share):
    expected = []
    for row in map(shares, log_probs.tolist()):
        nucleus, mass = set(), 0.0
        for token in sorted(range(VOCAB), key=lambda token: -row[token]):
            if nucleus and mass >= share:
                break
            nucleus.add(token)
            mass += row[token]
        expected.append(nucleus)
    assert kept(log_probs, TopP(share)) == expected


@pytest.mark.parametrize("share", [0.01, 0.3, 1.0])
def test_min_p_keeps_what_is_likely_beside_the_likeliest(log_probs, share):
    expected = [
        {token for token in range(VOCAB) if row[token] >= share * max(row)}
        for row in map(shares, log_probs.tolist())
    ]
    assert kept(log_probs, MinP(share)) == expected


@pytest.mark.parametrize("name", RESHAPES)
def test_no_change_changes_nothing(name):
    assert build_reshapes(SearchConfig(**(NO_CHANGE | {name: NO_CHANGE[name]}))) == []


@pytest.mark.parametrize("name", RESHAPES)
def test_every_setting_has_its_effect(name):
    (reshape,) = build_reshapes(SearchConfig(**(NO_CHANGE | {name: SOME[name]})))
    assert type(reshape) is RESHAPES[name]


def test_temperature_comes_before_the_cuts():
    assert [type(reshape) for reshape in build_reshapes(SearchConfig(**SOME))] == [
        Temperature,
        TopK,
        TopP,
        MinP,
    ]
