import math
import random
from collections import Counter

import pytest
import torch

from regard.core.errors import ConfigError
from regard.search.beam import beam_search
from regard.search.greedy import greedy
from regard.search.hypothesis import Hypothesis
from regard.search.mbr import pairwise_similarities, rank_by_consensus
from regard.search.sampling import sample
from regard.search.search import rescore, search
from regard.search.settings import SearchConfig

START, END = 9, 3
LIMITS = (6, 4)


@pytest.fixture
def scorer(tree_scorer, lecture_tree):
    return tree_scorer(lecture_tree, {(): (0.1, 0.2, 0.6, 0.1), (2,): (0.1, 0.1, 0.7, 0.1)})


def find(scorer, *, num_best=1, prefixes=None, sample_keys=None, **settings):
    return search(
        scorer,
        start=START,
        end=END,
        max_lengths=torch.tensor(LIMITS),
        config=SearchConfig(**settings),
        num_best=num_best,
        prefixes=prefixes,
        sample_keys=sample_keys,
    )


def tree_prob(scorer, row, tokens):
    """Probability of tokens in the tree."""
    steps = enumerate(tokens)
    return math.prod(scorer.trees[row].get(tokens[:i], (0.25,) * 4)[token] for i, token in steps)


def arguments():
    return {"start": START, "end": END, "max_lengths": torch.tensor(LIMITS)}


def test_one_beam_is_greedy(scorer):
    expected = greedy(scorer, **arguments())
    assert find(scorer, beams=1) == [[hypothesis] for hypothesis in expected]


def test_several_beams_are_beam_search(scorer):
    config = SearchConfig(beams=3)
    expected = beam_search(scorer, **arguments(), config=config, num_best=2)
    assert find(scorer, beams=3, num_best=2) == expected


def test_samples_are_ranked_by_log_probability(scorer):
    config = SearchConfig(temperature=2.0)
    samples = sample(scorer, **arguments(), config=config, num_samples=6, sample_keys=[6, 7])
    found = find(scorer, temperature=2.0, num_best=6, sample_keys=[6, 7])
    for ours, theirs in zip(found, samples, strict=True):
        assert sorted(one.tokens for one in ours) == sorted(one.tokens for one in theirs)
        log_probs = [one.log_prob for one in ours]
        assert log_probs == sorted(log_probs, reverse=True)
        assert log_probs != [one.log_prob for one in theirs]


def test_without_constraints_the_scorer_is_used_directly(scorer, monkeypatch):
    monkeypatch.setattr("regard.search.search.ConstrainedScorer", None)
    assert len(find(scorer, beams=2, prefixes=[[], []])) == 2


@pytest.mark.parametrize(
    "settings",
    [{"beams": 1}, {"beams": 3, "num_best": 3}, {"temperature": 1.0, "num_best": 4}],
    ids=["greedy", "beam", "sample"],
)
class TestEverySearch:
    def test_prefix_is_kept(self, scorer, settings):
        prefixes = [(1, 1, 0), (2,)]
        found = find(scorer, prefixes=prefixes, **settings)
        for prefix, group in zip(prefixes, found, strict=True):
            assert len(group) == settings.get("num_best", 1)
            assert all(one.tokens[: len(prefix)] == prefix for one in group)

    def test_prefix_that_cannot_be_generated_is_an_error(self, tree_scorer, settings):
        scorer = tree_scorer({}, {(2,): (0.5, 0.5, 0.0, 0.0)})
        with pytest.raises(
            ConfigError,
            match="`prefix`.*token 2 at position 2",
        ):
            find(scorer, prefixes=[(2, 2), (2, 2)], **settings)

    def test_log_probability_is_the_scorers(self, scorer, settings):
        found = find(
            scorer,
            prefixes=[(1, 1, 1), (2, 2)],
            no_repeat_ngram=2,
            min_length=4,
            repetition_penalty=1.5,
            **settings,
        )
        for row, group in enumerate(found):
            for one in group:
                assert math.exp(one.log_prob) == pytest.approx(tree_prob(scorer, row, one.tokens))
                assert one.log_prob == pytest.approx(sum(one.step_log_probs))
                assert len(one.step_log_probs) == len(one.tokens)

    def test_target_has_the_minimum_length(self, scorer, settings):
        for group in find(scorer, min_length=4, **settings):
            assert all(END not in one.tokens[:4] for one in group)

    def test_only_the_prefix_may_repeat_ngrams(self, scorer, settings):
        prefixes = [(1, 1, 1), (1, 1, 1)]
        for group in find(scorer, prefixes=prefixes, no_repeat_ngram=1, **settings):
            for one in group:
                rest = one.tokens[3:]
                assert len(set(rest)) == len(rest)
                assert 1 not in rest

    def test_prefix_as_long_as_the_limit_is_the_target(self, scorer, settings):
        prefix = (0, 1, 2, 1)
        found = find(scorer, prefixes=[prefix, prefix], **settings)[1]
        assert {one.tokens for one in found} == {prefix}

    def test_target_ends_if_every_token_would_repeat(self, scorer, settings):
        found = find(scorer, no_repeat_ngram=1, min_length=6, **settings)[0]
        assert all(sorted(one.tokens) == [0, 1, 2, END] for one in found)


def test_penalty_changes_the_target_and_its_value(scorer):
    ((plain,), _) = find(scorer, beams=1)
    ((found,), _) = find(scorer, beams=1, repetition_penalty=100.0, min_length=6)
    assert plain.tokens == (0, 1, 2, END)
    assert found.value < found.log_prob
    assert math.exp(found.log_prob) == pytest.approx(tree_prob(scorer, 0, found.tokens))


def test_value_of_a_sample_is_its_log_probability(scorer):
    for group in find(scorer, temperature=1.0, num_best=5, repetition_penalty=3.0, min_length=4):
        values = [one.value for one in group]
        assert values == [one.log_prob for one in group] == sorted(values, reverse=True)


@pytest.mark.parametrize("num_best", [1, 3])
def test_rescoring_what_the_scorer_found_changes_nothing(scorer, num_best):
    found = find(scorer, beams=3, num_best=num_best)
    for ours, theirs in zip(rescore(scorer, found, start=START), found, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert (one.tokens, one.value) == (other.tokens, other.value)
            assert one.step_log_probs == pytest.approx(other.step_log_probs)
            assert one.log_prob == pytest.approx(other.log_prob)


def test_rescoring_takes_groups_of_any_size(scorer):
    (three, two) = find(scorer, beams=3, num_best=3)
    found = rescore(scorer, [three, two[:1]], start=START)
    assert [len(group) for group in found] == [3, 1]


def similarity(one, other):
    return pairwise_similarities([one, other])[0, 1].item()


def test_the_consensus_of_beams_is_what_is_expected_to_be_most_alike(scorer):
    found = find(scorer, beams=2, num_best=3, consensus=6)
    candidates = find(scorer, beams=6, num_best=6)
    for row, group in enumerate(candidates):
        mass = sum(math.exp(one.log_prob) for one in group)
        expected = {
            one.tokens: sum(
                math.exp(other.log_prob) / mass * similarity(one.tokens, other.tokens)
                for other in group
            )
            for one in group
        }
        values = [one.value for one in found[row]]
        assert values == sorted(values, reverse=True)
        assert values == pytest.approx([expected[one.tokens] for one in found[row]])
        assert values[0] == pytest.approx(max(expected.values()))


def test_consensus_of_samples_counts_duplicates(scorer):
    samples = find(scorer, num_best=40, temperature=1.0, sample_keys=[5, 6])
    found = find(scorer, consensus=40, temperature=1.0, sample_keys=[5, 6])
    for row, group in enumerate(samples):
        means = {
            one.tokens: sum(similarity(one.tokens, other.tokens) for other in group) / 40
            for one in group
        }
        assert found[row][0].value == pytest.approx(max(means.values()))
        assert means[found[row][0].tokens] == pytest.approx(max(means.values()))


def test_consensus_may_differ_from_the_most_likely():
    """Five hypotheses are similar, and the most likely one is an outlier."""
    alone = Hypothesis((7, 7, 7, 3), math.log(0.3), (), 0.0)
    alike = [Hypothesis((1, 2, 4, 5, last, 3), math.log(0.14), (), 0.0) for last in range(10, 15)]
    found = rank_by_consensus([alone, *alike], is_sampled=False)
    assert found[0].tokens[:4] == (1, 2, 4, 5) and found[-1].tokens == alone.tokens


def test_similarity_is_the_mean_over_orders_of_min_precision_recall():
    assert similarity((1, 2, 3, 4), (1, 2, 3, 4)) == 1.0
    assert similarity((1, 2, 3, 4), (5, 6)) == 0.0
    one, other = (1, 2, 3, 3), (1, 2, 3, 9, 8)
    expected = (3 / 5 + 2 / 4 + 1 / 3 + 0 / 2) / 4
    assert similarity(one, other) == similarity(other, one) == pytest.approx(expected)
    assert similarity((), (1,)) == 0.0 and similarity((), ()) == 1.0


def test_similarity_counts_shared_ngrams_with_multiplicity():
    generator = random.Random(0)
    targets = [generator.choices(range(3), k=generator.randrange(9)) for _ in range(20)]
    found = pairwise_similarities(targets)
    for row, one in enumerate(targets):
        for column, other in enumerate(targets):
            values = []
            for order in range(1, 5):
                counts = [
                    Counter(tuple(side[at : at + order]) for at in range(len(side) - order + 1))
                    for side in (one, other)
                ]
                if most := max(count.total() for count in counts):
                    values.append((counts[0] & counts[1]).total() / most)
            expected = sum(values) / len(values) if values else 1.0
            assert found[row, column].item() == pytest.approx(expected)
