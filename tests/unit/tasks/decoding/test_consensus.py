import math

import pytest
import sacrebleu

from regard.search.settings import SearchConfig
from regard.tasks.decoding.consensus import compares_texts, find_candidates, rank_texts

SENTENCE_SCORES = {"chrf": sacrebleu.sentence_chrf, "bleu": sacrebleu.sentence_bleu}


@pytest.fixture(scope="module")
def predictor(tiny_run):
    return tiny_run.predictor


def expected_ranking(candidates, metric, *, is_sampled):
    """Texts in the order of minimum Bayes risk, by direct calls of sacrebleu."""
    weights = [1.0 if is_sampled else math.exp(one.log_prob) for one in candidates]
    expected = {
        one.token_ids: sum(
            weight * SENTENCE_SCORES[metric](one.text, [other.text]).score
            for other, weight in zip(candidates, weights, strict=True)
        )
        / sum(weights)
        for one in candidates
    }
    log_probs = {one.token_ids: one.log_prob for one in candidates}
    return sorted(expected, key=lambda tokens: (-round(expected[tokens], 6), -log_probs[tokens]))


@pytest.mark.parametrize("metric", SENTENCE_SCORES)
@pytest.mark.parametrize(
    "settings", [{"beams": 6}, {"temperature": 1.5, "seed": 4}], ids=["beam", "samples"]
)
def test_best_prediction_is_that_of_a_direct_computation(predictor, metric, settings):
    sources = ["a b c d e", "e d", "b b a"]
    candidates = predictor.predict(sources, search=SearchConfig(**settings), num_best=6)
    config = SearchConfig(**settings, consensus=6, consensus_metric=metric)
    found = predictor.predict(sources, search=config, num_best=2)
    for ours, group in zip(found, candidates, strict=True):
        expected = expected_ranking(group, metric, is_sampled="temperature" in settings)
        assert [one.token_ids for one in ours] == expected[:2]


def test_consensus_of_texts_differs_from_the_most_likely_one(predictor):
    (group,) = predictor.predict(["a b c d e"], search=SearchConfig(temperature=1.5), num_best=8)
    config = SearchConfig(temperature=1.5, consensus=8, consensus_metric="chrf")
    (found,) = predictor.predict(["a b c d e"], search=config, num_best=8)
    assert {one.text for one in found} == {one.text for one in group}
    assert [one.log_prob for one in found] != sorted((one.log_prob for one in found), reverse=True)


def test_a_language_model_continues_by_consensus(language_task):
    config = SearchConfig(temperature=1.0, max_extra=5, consensus=4, consensus_metric="chrf")
    (found,) = language_task.predict(["the cat"], search=config, num_best=2)
    plain = SearchConfig(temperature=1.0, max_extra=5)
    (samples,) = language_task.predict(["the cat"], search=plain, num_best=4)
    assert found[0].text in {one.text for one in samples}


def test_other_settings_leave_the_search_as_it_is():
    for config in (SearchConfig(), SearchConfig(consensus=4)):
        assert not compares_texts(config)
        assert find_candidates(config, 3) == (config, 3)
        assert rank_texts([], config, num_best=1, write=str) == []


def test_candidates_are_as_many_as_the_settings_ask_for():
    config = SearchConfig(beams=3, groups=3, consensus=7, consensus_metric="bleu")
    search, num = find_candidates(config, 2)
    assert (search.beams, search.groups, search.consensus, num) == (9, 3, 0, 7)
