import pytest
import torch

from regard.search import beam, greedy
from regard.search.search import search
from regard.search.settings import SearchConfig
from regard.search.watching import current_watch, watching
from tests.unit.search.test_tree import LIMITS, SETTINGS, TREES, find

KINDS = [{"beams": 1}, {"temperature": 1.0}, *SETTINGS]


@pytest.mark.parametrize("settings", KINDS)
def test_watched_search_equals_search(tree_scorer, settings):
    expected = find(tree_scorer(*TREES), *LIMITS, **settings)
    seen = []
    with watching(lambda read: seen.append(read())):
        assert find(tree_scorer(*TREES), *LIMITS, **settings) == expected
    assert len(seen) >= max(len(one.tokens) for group in expected for one in group)
    assert current_watch() is None


@pytest.mark.parametrize("settings", [{"beams": 1}, {"temperature": 1.0}])
def test_each_step_continues_the_target_of_a_search_without_beams(tree_scorer, settings):
    seen = []
    with watching(lambda read: seen.append(read())):
        ((found,),) = find(tree_scorer(TREES[0]), 5, **settings)
    assert seen == [found.tokens[:length] for length in range(1, len(found.tokens) + 1)]


@pytest.mark.parametrize("settings", [{"beams": 1}, {"temperature": 1.0}, {"beams": 3}])
def test_steps_after_the_end_are_not_read(tree_scorer, monkeypatch, settings):
    expected = []
    with watching(lambda read: expected.append(read())):
        find(tree_scorer(TREES[0]), 9, **settings)
    # On a GPU, the end is found some steps later.
    for module in (beam, greedy):
        monkeypatch.setattr(module, "should_check", lambda step, device: step == 8)
    seen = []
    with watching(lambda read: seen.append(read())):
        find(tree_scorer(TREES[0]), 9, **settings)
    assert len(expected) < len(seen) == 9
    rest = () if settings.get("beams") == 3 else expected[-1]
    assert seen == [*expected, *[rest] * (9 - len(expected))]


def test_the_most_likely_active_beam_is_read(tree_scorer):
    seen = []
    with watching(lambda read: seen.append(read())):
        find(tree_scorer(TREES[1]), 5, beams=3)
    generated = {0: 0.0, 1: 0.0, 2: 0.0}
    first = max(generated, key=lambda token: TREES[1][()][token])
    assert seen[0] == (first,)
    assert [len(tokens) for tokens in seen] == list(range(1, len(seen) + 1))


def test_an_exception_ends_a_search(tree_scorer):
    steps = []

    def watch(read):
        steps.append(1)
        if len(steps) == 2:
            raise TimeoutError

    with pytest.raises(TimeoutError), watching(watch):
        search(
            tree_scorer(TREES[0]),
            start=9,
            end=3,
            max_lengths=torch.tensor([5]),
            config=SearchConfig(beams=3, min_length=4),
        )
    assert len(steps) == 2
