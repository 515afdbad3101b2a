from dataclasses import replace

import pytest

from regard.core.errors import ConfigError
from regard.data.example import Example
from regard.data.text.dialogue import write_context
from regard.runs.reranking import last_turn, predict_function, rerank
from regard.search.settings import SearchConfig

SOURCES = ["a b c d e", "e d", "", "b b a", "d d c a"]
BEAM = SearchConfig(beams=12, length_penalty=0.7)
SAMPLING = SearchConfig(temperature=2.0, seed=3)
HEAVY = 1e6


@pytest.fixture(scope="module")
def task(tiny_run):
    """Model that reverses its source, and is therefore its own reverse model."""
    return tiny_run.predictor


@pytest.fixture(scope="module")
def reverse(tiny_run_without_attention):
    """Untrained model, which ranks differently."""
    return tiny_run_without_attention.predictor


def texts(predictions):
    return [[prediction.text for prediction in best] for best in predictions]


def reverse_scores(reverse, reverse_target, candidates):
    """Scores of the reverse target given each candidate, computed one at a time."""
    scored = [reverse.score([Example(one.text, reverse_target)])[0] for one in candidates]
    return [one.log_prob / len(one.tokens) ** 0.7 for one in scored]


@pytest.mark.parametrize("weight", [0.0, 0.3, 2.0])
def test_candidates_are_ranked_by_the_formula(task, reverse, weight):
    candidates = task.predict(SOURCES, search=BEAM, num_best=12)
    reranked = rerank(task, reverse, SOURCES, num_best=12, weight=weight, search=BEAM)
    for source, group, ours in zip(SOURCES, candidates, reranked, strict=True):
        values = [
            one.log_prob / max(len(one.tokens), 1) ** 0.7 + weight * back
            for one, back in zip(group, reverse_scores(reverse, source, group), strict=True)
        ]
        ranked = sorted(zip(values, group, strict=True), key=lambda pair: -pair[0])
        assert [one.text for one in ours] == [one.text for _, one in ranked]


def test_weight_zero_keeps_the_order_of_the_model(task, reverse):
    reranked = rerank(task, reverse, SOURCES, num_best=12, weight=0.0, search=BEAM)
    assert texts(reranked) == texts(task.predict(SOURCES, search=BEAM, num_best=12))


def test_with_a_large_weight_the_reverse_model_decides(task, reverse):
    reranked = rerank(task, reverse, SOURCES, num_best=12, weight=HEAVY, search=BEAM)
    for source, best in zip(SOURCES, reranked, strict=True):
        values = reverse_scores(reverse, source, best)
        assert values == sorted(values, reverse=True)
    assert texts(reranked) != texts(task.predict(SOURCES, search=BEAM, num_best=12))


def test_candidate_that_predicts_the_source_ranks_first(task):
    # At a high temperature most candidates are wrong; the right one predicts the source best.
    search = replace(SAMPLING, beams=40)
    (reranked,) = rerank(task, task, ["a b c"], num_best=3, weight=HEAVY, search=search)
    assert reranked[0].text == "c b a"


@pytest.mark.parametrize("search", [BEAM, SAMPLING])
def test_batch_equals_single_sources(task, reverse, search):
    together = rerank(task, reverse, SOURCES, num_best=4, weight=0.5, search=search)
    alone = [
        rerank(task, reverse, [source], num_best=4, weight=0.5, search=search)[0]
        for source in SOURCES
    ]
    assert texts(together) == texts(alone)


def test_sampled_candidates_are_distinct(task, reverse):
    cold = SearchConfig(temperature=0.3, seed=1)
    sampled = task.predict(["a b", "c d e"], search=cold, num_best=10)
    reranked = rerank(task, reverse, ["a b", "c d e"], num_best=10, search=cold)
    for ours, before in zip(texts(reranked), texts(sampled), strict=True):
        assert len(before) > len({*before}) == len(ours)
        assert {*ours} == {*before}


def test_log_probabilities_are_those_of_the_generating_model(task, reverse):
    (best,) = rerank(task, reverse, ["a b c"], num_best=3, weight=HEAVY, search=BEAM)
    known = {one.text: one for one in task.predict(["a b c"], search=BEAM, num_best=12)[0]}
    assert best == [known[one.text] for one in best]


def test_few_beams_still_give_ten_candidates(task, reverse):
    (reranked,) = rerank(task, reverse, ["a b c"], num_best=1, search=SearchConfig(beams=1))
    assert len(reranked) == 1
    wide = rerank(task, reverse, ["a b c"], num_best=1, search=SearchConfig(beams=10))
    assert texts([reranked]) == texts(wide)


def test_every_candidate_starts_with_the_prefix(task, reverse):
    (reranked,) = rerank(task, reverse, ["a b c"], num_best=5, search=BEAM, prefix="e e")
    assert all(one.text.startswith("e e") for one in reranked)


def test_reverse_target_replaces_the_source(task, reverse):
    reranked = rerank(
        task,
        reverse,
        ["a b c d"],
        num_best=12,
        weight=HEAVY,
        search=BEAM,
        reverse_target=lambda _: "e e",
    )
    by_target, by_source = (
        reverse_scores(reverse, text, reranked[0]) for text in ("e e", "a b c d")
    )
    assert by_target == sorted(by_target, reverse=True)
    assert by_source != sorted(by_source, reverse=True)


def test_reverse_target_has_the_source_columns_only(task, reverse, monkeypatch):
    data = replace(task.recipe.data, columns=("source", "source", "target"))
    monkeypatch.setattr(task, "recipe", replace(task.recipe, data=data))
    scored = []

    def note(text):
        scored.append(text)
        return text

    rerank(task, reverse, ["a b\tc\tthe target"], num_best=1, search=BEAM, reverse_target=note)
    assert scored == ["a b\tc"]


def test_no_sources_give_no_predictions(task, reverse):
    assert rerank(task, reverse, [], num_best=1) == []


@pytest.mark.parametrize(
    ("context", "last"),
    [
        (write_context(["hi", "hello", "how are you"]), "how are you"),
        (write_context(["hi"]), "hi"),
        (write_context(["a", "b", "c"], max_turns=2), "c"),
        ("She asked you: go", "She asked you: go"),
        ("", ""),
    ],
)
def test_last_turn_of_a_context(context, last):
    assert last_turn(context) == last


def test_other_tasks_cannot_rerank(task, sorting_run):
    with pytest.raises(
        ConfigError,
        match=r"^The run that reranks must be .* 'generation'.* 'sorting'\.$",
    ):
        rerank(task, sorting_run, ["a"], num_best=1)
    with pytest.raises(ConfigError, match=r"^The run to be reranked must be .* 'generation'"):
        predict_function(sorting_run, task)


@pytest.mark.parametrize("weight", [-0.1, float("nan")])
def test_negative_weight_is_refused(task, reverse, weight):
    with pytest.raises(ConfigError, match=r"^`rerank-weight` must be at least 0\.0, but is "):
        rerank(task, reverse, ["a"], num_best=1, weight=weight)


def test_zero_predictions_are_refused(task, reverse):
    with pytest.raises(ConfigError, match=r"`nbest` must be at least 1, but is 0\."):
        rerank(task, reverse, ["a"], num_best=0)


def test_weight_without_a_reranker_has_no_effect(task, caplog):
    assert texts(predict_function(task)(SOURCES)) == texts(task.predict(SOURCES))
    assert not caplog.messages
    predict_function(task, None, 0.7)
    assert caplog.messages == ["`--rerank-weight` is 0.7, but has no effect without `--rerank`."]
