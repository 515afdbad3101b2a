from dataclasses import replace

import pytest

from regard.core.errors import ConfigError
from regard.search.settings import SearchConfig
from regard.tasks.generation.lexical import LexicalOptions
from regard.tasks.prediction import PhraseResult

SOURCES = ["a b c", "", "e d", "b a c d"]


@pytest.fixture(scope="module")
def predictor(tiny_run):
    return tiny_run.predictor


def controlled(predictor, **options):
    return predictor.with_lexical(LexicalOptions(**options))


def assert_equal(found, expected):
    """Predictions are equal, but for the list of constraints."""
    for left, right in zip(found, expected, strict=True):
        assert [one.tokens for one in left] == [one.tokens for one in right]
        assert [one.log_prob for one in left] == pytest.approx(
            [one.log_prob for one in right], abs=1e-5
        )


def test_terms_of_a_source_have_their_translation_in_the_target(predictor):
    task = controlled(predictor, glossary={"a b": "e e d", "E": "a", "d": "c c"})
    first, empty, third, last = task.translate(SOURCES)
    assert "e e d" in first
    assert "e e d" not in predictor.translate(SOURCES)[0]
    assert empty == ""
    # A term with a capital has no other spelling.
    assert "c c" in third
    assert "c c" in last


def test_results_have_the_constraints(predictor):
    task = controlled(predictor, glossary={"a": "e e"}, keep=("[cd]",), forbid=("b",))
    [[found]] = task.predict(["a b c c"])
    assert found.phrases == (
        PhraseResult("e e", "glossary", "a", is_met=True),
        PhraseResult("c", "keep", "c", is_met=True),
        PhraseResult("b", "forbid", None, is_met=True),
    )
    assert found.text.split().count("c") >= 2
    assert predictor.predict(["a b c c"])[0][0].phrases is None


def test_results_name_constraints_that_are_not_met(predictor):
    task = controlled(predictor, require={"a b": ("c d e",)})
    [[found]] = task.predict(["a b"])
    assert [phrase.is_met for phrase in found.phrases] == [True]
    # The text of a prediction decides, not the search.
    [shown] = task.lexical._measure("a b", task.lexical._find("a b"))
    assert not shown.is_met


@pytest.mark.parametrize("search", [SearchConfig(beams=1), SearchConfig(beams=4)])
def test_batched_equals_alone(predictor, search):
    task = controlled(predictor, glossary={"a": "e e", "d": "c b c"}, forbid=("a b",))
    together = task.predict(SOURCES, search=search)
    for source, found in zip(SOURCES, together, strict=True):
        assert_equal(task.predict([source], search=search), [found])


@pytest.mark.parametrize(
    "search", [SearchConfig(beams=1), SearchConfig(beams=4), SearchConfig(temperature=1.0)]
)
def test_sources_without_constraints_have_the_plain_predictions(predictor, search):
    task = controlled(predictor, require={"b a c d": ("a a a",)} if search.beams == 4 else {})
    found = task.predict(SOURCES, search=search)
    plain = predictor.predict(SOURCES, search=search)
    assert_equal(found[:3], plain[:3])


@pytest.mark.parametrize(
    "search",
    [SearchConfig(beams=1), SearchConfig(beams=4), SearchConfig(temperature=2.0, seed=2)],
)
def test_forbidden_words_are_not_in_targets(predictor, search):
    plain = predictor.translate(SOURCES, search=search)
    assert any("b" in text or "c a" in text for text in plain)
    found = controlled(predictor, forbid=("b", "c a")).translate(SOURCES, search=search)
    assert not any("b" in text or "c a" in text for text in found)


def test_phrases_of_one_source_are_required_for_it_alone(predictor):
    task = controlled(predictor, require={"e d": ("a a", "b")})
    first, _, third, _ = task.translate(SOURCES)
    assert "a a" in third
    assert "b" in third
    assert first == predictor.translate(SOURCES)[0]


def test_parts_that_cannot_be_spelled_are_logged(predictor, caplog):
    task = controlled(predictor, keep=("number",))
    assert task.translate(["a b 7", "c"]) == predictor.translate(["a b 7", "c"])
    assert "1 parts of sources cannot be kept" in caplog.text
    assert "(first: '7', in number 1)" in caplog.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"glossary": {"a": "a Ж"}}, "`glossary` must have targets of tokens .* 'a Ж' is token"),
        ({"require": {"a": ("Ж",)}}, "`require` must have targets of tokens"),
        ({"require": {"a": (" ",)}}, "`require` must have words or phrases, but one is empty"),
        ({"forbid": ("",)}, "`forbid` must be a word or phrase, but is empty"),
        ({"glossary": {"a": "d e"}, "forbid": ("e",)}, "'d e' contains 'e' \\(`forbid`\\)"),
        ({"keep": ("(",)}, "`keep` must be"),
    ],
)
def test_wrong_options_are_refused(predictor, options, message):
    with pytest.raises(ConfigError, match=message):
        controlled(predictor, **options)


def test_prefix_with_a_forbidden_word_is_refused(predictor):
    task = controlled(predictor, forbid=("e",))
    with pytest.raises(ConfigError, match="`prefix` must not contain forbidden phrases"):
        task.predict(["a b"], prefix="e e")
    assert task.predict(["a b"], prefix="d d")[0][0].text.startswith("d d")


def test_kept_part_with_a_forbidden_word_is_refused(predictor):
    task = controlled(predictor, keep=("[ab]",), forbid=("b",))
    with pytest.raises(ConfigError, match="`keep` must not contain forbidden phrases"):
        task.predict(["a b"])


def test_forbidden_word_that_cannot_be_spelled_is_logged(predictor, caplog):
    task = controlled(predictor, forbid=("Ж",))
    assert "`forbid` is 'Ж', but has no effect" in caplog.text
    assert task.translate(SOURCES) == predictor.translate(SOURCES)


def test_phrases_longer_than_the_target_are_refused(predictor):
    task = controlled(predictor, glossary={"a": "b b b b"})
    search = replace(predictor.search, max_ratio=0.0, max_extra=4)
    with pytest.raises(ConfigError, match=r"\(4 tokens\), but the phrase 'b b b b'"):
        task.predict(["a"], search=search)


def test_prefix_and_required_phrases_are_combined(predictor):
    task = controlled(predictor, glossary={"a": "c c c"})
    [[found]] = task.predict(["a b"], prefix="e e")
    assert found.text.startswith("e e")
    assert "c c c" in found.text


def test_no_text_of_a_run_is_changed_by_its_lexical_control(predictor):
    controlled(predictor, forbid=("b",))
    assert predictor.lexical is None
