import pytest

from regard.core.errors import ConfigError
from regard.search.settings import SearchConfig
from regard.tasks.decoding.alternatives import add_alternatives

SOURCES = ["a b c d e", "", "e d", "b b a"]


@pytest.fixture(scope="module")
def predictor(tiny_run):
    return tiny_run.predictor


@pytest.mark.parametrize(
    "settings",
    [
        {"beams": 1},
        {"beams": 3, "repetition_penalty": 1.3, "no_repeat_ngram": 2},
        {"temperature": 1.0},
        {"beams": 3, "consensus": 3, "consensus_metric": "chrf"},
    ],
)
def test_log_probabilities_are_those_of_the_prediction(predictor, settings):
    search = SearchConfig(**settings)
    num_best = 1 if settings.get("beams") == 1 else 2
    plain = predictor.predict(SOURCES, search=search, num_best=num_best)
    num = predictor.target.tokenizer.vocab_size
    found = add_alternatives(predictor, SOURCES, plain, num=num, search=search)
    for before, after in zip(plain, found, strict=True):
        assert [one.text for one in before] == [one.text for one in after]
        for one in after:
            assert len(one.alternatives) == len(one.tokens)
            for token, log_prob, position in zip(
                one.tokens, one.token_log_probs, one.alternatives, strict=True
            ):
                assert dict(position)[token] == pytest.approx(log_prob, abs=1e-5)
                values = [value for _, value in position]
                assert values == sorted(values, reverse=True)


def test_greedy_search_takes_the_first_alternative(predictor):
    search = SearchConfig(beams=1)
    predictions = predictor.predict(SOURCES, search=search)
    for (one,) in add_alternatives(predictor, SOURCES, predictions, num=2, search=search):
        assert tuple(position[0][0] for position in one.alternatives) == one.tokens
        assert all(len(position) == 2 for position in one.alternatives)


def test_json_has_alternatives_only_if_they_were_asked_for(predictor):
    search = SearchConfig(beams=2)
    predictions = predictor.predict(["a b"], search=search)
    assert "alternatives" not in predictions[0][0].to_dict()
    ((one,),) = add_alternatives(predictor, ["a b"], predictions, num=1, search=search)
    assert one.to_dict()["alternatives"] == one.alternatives


@pytest.mark.parametrize("name", ["generation", "language_model", "denoising", "autoencoding"])
def test_every_task_that_generates_has_alternatives(name, task_run):
    task = task_run(name).predictor
    sources = ["the cat <mask> a dog", "a <mask> sees"] if name == "denoising" else ["the cat", "a"]
    search = SearchConfig(beams=2, max_extra=5)
    predictions = task.predict(sources, search=search, num_best=2)
    num = task.output_tokenizer.vocab_size
    found = add_alternatives(task, sources, predictions, num=num, search=search)
    for one in [one for group in found for one in group]:
        assert len(one.alternatives) == len(one.tokens) > 0
        for token, log_prob, position in zip(
            one.tokens, one.token_log_probs, one.alternatives, strict=True
        ):
            assert dict(position)[token] == pytest.approx(log_prob, abs=1e-5)


def test_other_tasks_and_numbers_are_refused(predictor, sorting_run):
    with pytest.raises(ConfigError, match=r"`alternatives` must be at least 1, but is 0"):
        add_alternatives(predictor, [], [], num=0, search=SearchConfig())
    with pytest.raises(ConfigError, match="`alternatives`.*'sorting'"):
        add_alternatives(sorting_run, [], [], num=1, search=SearchConfig())
