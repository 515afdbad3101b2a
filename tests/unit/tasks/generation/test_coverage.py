import math
from dataclasses import replace

import pytest
import torch

from regard.core.errors import ConfigError
from regard.data.example import Example
from regard.search.settings import SearchConfig
from regard.tasks.generation.coverage import MIN_COVERAGE, coverage_penalty

SOURCES = ["a b c d e", "", "e d", "b b a"]


@pytest.fixture(scope="module")
def predictor(tiny_run):
    return tiny_run.predictor


def penalty_of(predictor, source, prediction):
    """The coverage penalty from the attention map of a prediction."""
    (attention,) = predictor.attend([Example(source, prediction.text)])
    assert attention.target == prediction.tokens
    received = attention.mean().sum(0)
    return sum(math.log(min(1.0, value)) for value in received.tolist())


def test_penalty_is_the_sum_of_log_coverage():
    weights = torch.tensor([[[0.5, 0.5, 0.0], [0.1, 0.9, 0.0], [0.3, 0.3, 0.4]]])
    mask = torch.tensor([[True, True, False]])
    found = coverage_penalty(weights, torch.tensor([2]), mask)
    assert found.item() == pytest.approx(math.log(0.6))


def test_a_position_without_attention_has_a_finite_penalty():
    found = coverage_penalty(torch.zeros(1, 2, 1), torch.tensor([2]), torch.ones(1, 1).bool())
    assert found.item() == pytest.approx(math.log(MIN_COVERAGE))


@pytest.mark.parametrize("weight", [0.2, 5.0])
def test_hypotheses_are_ranked_by_score_and_coverage(predictor, weight):
    config = SearchConfig(beams=4)
    plain = predictor.predict(SOURCES, search=config, num_best=4)
    found = predictor.predict(SOURCES, search=replace(config, coverage_penalty=weight), num_best=4)
    for source, before, after in zip(SOURCES, plain, found, strict=True):
        if not source:
            assert before == after
            continue
        values = {
            one.token_ids: one.log_prob / len(one.tokens)
            + weight * penalty_of(predictor, source, one)
            for one in before
        }
        ranked = [values[one.token_ids] for one in after]
        assert ranked == pytest.approx(sorted(values.values(), reverse=True), abs=1e-5)


def test_a_large_weight_changes_the_order(predictor):
    sources = ["a b c d e", "e d c a", "b b a d", "c a d b"]
    plain = predictor.predict(sources, search=SearchConfig(beams=4))
    found = predictor.predict(sources, search=SearchConfig(beams=4, coverage_penalty=50.0))
    assert [one[0].text for one in plain] != [one[0].text for one in found]


def test_samples_are_ranked_as_well(predictor):
    config = SearchConfig(temperature=1.5, coverage_penalty=0.5)
    (found,) = predictor.predict(["a b c d e"], search=config, num_best=5)
    values = [
        one.log_prob + 0.5 * penalty_of(predictor, "a b c d e", one)
        for one in found
        if one.tokens[-1] == "<eos>"
    ]
    assert values == pytest.approx(sorted(values, reverse=True), abs=1e-5)


def test_coverage_does_not_depend_on_the_batch(predictor):
    config = SearchConfig(beams=4, coverage_penalty=1.0)
    together = predictor.predict(SOURCES, search=config, num_best=3)
    for source, found in zip(SOURCES, together, strict=True):
        (alone,) = predictor.predict([source], search=config, num_best=3)
        assert [one.text for one in alone] == [one.text for one in found]


def test_a_model_without_attention_is_refused(tiny_run_without_attention):
    task = tiny_run_without_attention.predictor
    with pytest.raises(
        ConfigError, match=r"^`search\.coverage_penalty`.*cross-attention, but is 0\.5\."
    ):
        task.predict(["a b"], search=SearchConfig(coverage_penalty=0.5))


def test_a_language_model_is_refused(language_task):
    with pytest.raises(ConfigError, match=r"`search\.coverage_penalty`.*language model"):
        language_task.predict(["the cat"], search=SearchConfig(coverage_penalty=0.5))
