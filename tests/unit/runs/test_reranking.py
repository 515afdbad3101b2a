from dataclasses import replace

import pytest

from regard.core.errors import ConfigError
from regard.data.example import Example
from regard.data.text.dialogue import write_context
from regard.runs.reranking import last_turn, predict_function, rerank
from regard.search.settings import SearchConfig

SOURCES = ["a b c d e", "e d", "", "b b a", "d d c a"]
BEAM = SearchConfig(beams=12, length_penalty=0.7)
DRAWN = SearchConfig(temperature=2.0, seed=3)
HEAVY = 1e6


@pytest.fixture(scope="module")
def task(tiny_run):
    """Writes letters backwards, and so does what turns its answers round again."""
    return tiny_run.predictor


@pytest.fixture(scope="module")
def reverse(tiny_run_without_attention):
    """Has learned nothing, so that it disagrees."""
    return tiny_run_without_attention.predictor


def texts(found):
    return [[one.text for one in best] for best in found]


def told(reverse, reverse_target, candidates):
    """Log-probability of the reverse_target given each candidate, one at a time."""
    scored = [reverse.score([Example(one.text, reverse_target)])[0] for one in candidates]
    return [one.log_prob / len(one.tokens) ** 0.7 for one in scored]


@pytest.mark.parametrize("weight", [0.0, 0.3, 2.0])
def test_candidates_are_ranked_by_the_formula(task, reverse, weight):
    candidates = task.predict(SOURCES, search=BEAM, num_best=12)
    found = rerank(task, reverse, SOURCES, num_best=12, weight=weight, search=BEAM)
    for source, group, ours in zip(SOURCES, candidates, found, strict=True):
        values = [
            one.log_prob / max(len(one.tokens), 1) ** 0.7 + weight * back
            for one, back in zip(group, told(reverse, source, group), strict=True)
        ]
        ranked = sorted(zip(values, group, strict=True), key=lambda pair: -pair[0])
        assert [one.text for one in ours] == [one.text for _, one in ranked]


def test_without_weight_the_order_is_the_models_own(task, reverse):
    found = rerank(task, reverse, SOURCES, num_best=12, weight=0.0, search=BEAM)
    assert texts(found) == texts(task.predict(SOURCES, search=BEAM, num_best=12))


def test_with_a_large_weight_the_reverse_model_decides(task, reverse):
    found = rerank(task, reverse, SOURCES, num_best=12, weight=HEAVY, search=BEAM)
    for source, best in zip(SOURCES, found, strict=True):
        values = told(reverse, source, best)
        assert values == sorted(values, reverse=True)
    assert texts(found) != texts(task.predict(SOURCES, search=BEAM, num_best=12))


def test_what_tells_nothing_of_the_question_falls_behind(task):
    # Drawn with a high temperature, most candidates are wrong; the right one leads back.
    drawn = replace(DRAWN, beams=40)
    (found,) = rerank(task, task, ["a b c"], num_best=3, weight=HEAVY, search=drawn)
    assert found[0].text == "c b a"


@pytest.mark.parametrize("search", [BEAM, DRAWN])
def test_batched_equals_alone(task, reverse, search):
    together = rerank(task, reverse, SOURCES, num_best=4, weight=0.5, search=search)
    alone = [
        rerank(task, reverse, [source], num_best=4, weight=0.5, search=search)[0]
        for source in SOURCES
    ]
    assert texts(together) == texts(alone)


def test_drawn_candidates_are_distinct(task, reverse):
    cold = SearchConfig(temperature=0.3, seed=1)
    drawn = task.predict(["a b", "c d e"], search=cold, num_best=10)
    found = rerank(task, reverse, ["a b", "c d e"], num_best=10, search=cold)
    for ours, before in zip(texts(found), texts(drawn), strict=True):
        assert len(before) > len({*before}) == len(ours)
        assert {*ours} == {*before}


def test_log_probabilities_are_those_of_the_model_that_writes(task, reverse):
    (best,) = rerank(task, reverse, ["a b c"], num_best=3, weight=HEAVY, search=BEAM)
    known = {one.text: one for one in task.predict(["a b c"], search=BEAM, num_best=12)[0]}
    assert best == [known[one.text] for one in best]


def test_few_beams_still_give_ten_candidates(task, reverse):
    (found,) = rerank(task, reverse, ["a b c"], num_best=1, search=SearchConfig(beams=1))
    assert len(found) == 1
    wide = rerank(task, reverse, ["a b c"], num_best=1, search=SearchConfig(beams=10))
    assert texts([found]) == texts(wide)


def test_every_candidate_begins_with_the_prefix(task, reverse):
    (found,) = rerank(task, reverse, ["a b c"], num_best=5, search=BEAM, prefix="e e")
    assert all(one.text.startswith("e e") for one in found)


def test_only_the_question_is_told(task, reverse):
    found = rerank(
        task,
        reverse,
        ["a b c d"],
        num_best=12,
        weight=HEAVY,
        search=BEAM,
        reverse_target=lambda _: "e e",
    )
    reverse_target, whole = (told(reverse, text, found[0]) for text in ("e e", "a b c d"))
    assert reverse_target == sorted(reverse_target, reverse=True)
    assert whole != sorted(whole, reverse=True)


def test_of_several_source_columns_only_those_are_told(task, reverse, monkeypatch):
    data = replace(task.recipe.data, columns=("source", "source", "target"))
    monkeypatch.setattr(task, "recipe", replace(task.recipe, data=data))
    asked = []

    def note(text):
        asked.append(text)
        return text

    rerank(task, reverse, ["a b\tc\tthe target"], num_best=1, search=BEAM, reverse_target=note)
    assert asked == ["a b\tc"]


def test_no_source_has_no_answer(task, reverse):
    assert rerank(task, reverse, [], num_best=1) == []


@pytest.mark.parametrize(
    ("context", "last"),
    [
        (write_context(["hi", "hello", "how are you"]), "how are you"),
        (write_context(["hi"]), "hi"),
        (write_context(["a", "b", "c"], most=2), "c"),
        ("She told you: go", "She told you: go"),
        ("", ""),
    ],
)
def test_last_turn_is_what_the_other_said_last(context, last):
    assert last_turn(context) == last


def test_other_tasks_cannot_rerank(task, sorting_run):
    with pytest.raises(
        ConfigError,
        match=r"^What reranks must be a run for the task 'generation', an encoder–decoder, but is "
        r"one for 'sorting'\.$",
    ):
        rerank(task, sorting_run, ["a"], num_best=1)
    with pytest.raises(ConfigError, match=r"^What is reranked must be a run for the task"):
        predict_function(sorting_run, task)


@pytest.mark.parametrize("weight", [-0.1, float("nan")])
def test_weight_is_never_negative(task, reverse, weight):
    with pytest.raises(ConfigError, match=r"^`rerank-weight` must be at least 0\.0, but is "):
        rerank(task, reverse, ["a"], num_best=1, weight=weight)


def test_no_answers_at_all_are_refused(task, reverse):
    with pytest.raises(ConfigError, match=r"`nbest` must be at least 1, but is 0\."):
        rerank(task, reverse, ["a"], num_best=0)


def test_run_alone_answers_by_itself_and_a_weight_is_idle(task, caplog):
    assert texts(predict_function(task)(SOURCES)) == texts(task.predict(SOURCES))
    assert not caplog.messages
    predict_function(task, None, 0.7)
    assert caplog.messages == ["`--rerank-weight` is 0.7, but has no effect without `--rerank`."]
