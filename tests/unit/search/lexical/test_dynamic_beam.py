from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.core.errors import ConfigError
from regard.search.length_penalty import length_scale
from regard.search.lexical.constraints import (
    SEPARATOR,
    LexicalConstraints,
    LexicalScorer,
    Phrase,
    Vocabulary,
)
from regard.search.search import search
from regard.search.settings import SearchConfig
from regard.search.tree import record_trees
from tests.unit.search.random_scorer import (
    END,
    SIZE,
    START,
    WORDS,
    RandomScorer,
    next_log_probs,
)

WORD_TOKENS = Vocabulary(torch.ones(SIZE, dtype=torch.bool), torch.zeros(SIZE, dtype=torch.bool))

PHRASES = st.lists(
    st.tuples(st.lists(st.integers(0, WORDS - 1), min_size=1, max_size=3), st.integers(1, 2)),
    max_size=3,
)


def constraints(*phrases):
    """Constraints of one sentence; a phrase is its tokens, or its tokens and the number."""
    pairs = [phrase if isinstance(phrase[0], tuple) else (phrase, 1) for phrase in phrases]
    return LexicalConstraints(tuple(Phrase((ids,), str(ids), count) for ids, count in pairs))


def find(seeds, given, limits, *, vocabulary=WORD_TOKENS, num_best=1, **changes):
    """Search results of sentences with seeds under constraints."""
    return search(
        LexicalScorer(RandomScorer(*seeds), given, vocabulary),
        start=START,
        end=END,
        max_lengths=torch.tensor(limits),
        config=SearchConfig(**{"beams": 4, **changes}),
        num_best=num_best,
    )


def count(tokens, phrase):
    """Number of occurrences of a phrase that do not overlap, from left to right."""
    num = start = 0
    while start + len(phrase) <= len(tokens):
        is_here = tuple(tokens[start : start + len(phrase)]) == tuple(phrase)
        num += is_here
        start += len(phrase) if is_here else 1
    return num


def is_met(tokens, given):
    return all(count(tokens, one.forms[0]) >= one.count for one in given.required)


def test_few_targets_of_plain_search_contain_the_phrase():
    # Otherwise, the tests below would pass without constraints.
    found = [find([seed], [constraints()], [8])[0][0].tokens for seed in range(20)]
    assert sum(count(tokens, (2, 0, 2)) for tokens in found) <= 2


@pytest.mark.parametrize(
    "phrases",
    [
        pytest.param([(2, 0, 2)], id="one phrase"),
        pytest.param([(2, 2), (0,), (1, 1)], id="several phrases"),
        pytest.param([(0, 1), (0, 2)], id="a common first token"),
        pytest.param([(0, 1), (1, 2)], id="an overlap"),
        pytest.param([(1, 2), (1, 2, 0), (2,)], id="phrases in phrases"),
        pytest.param([((1, 1), 2)], id="twice"),
        pytest.param([((0, 1, 0), 2), ((0,), 3)], id="overlaps with itself"),
    ],
)
@pytest.mark.parametrize("beams", [1, 2, 5])
def test_targets_contain_all_phrases_whenever_the_length_allows(phrases, beams):
    given = constraints(*phrases)
    for seed in range(10):
        for extra in (1, 3):
            [[best]] = find([seed], [given], [given.num_tokens + extra], beams=beams)
            assert is_met(best.tokens, given), (seed, extra, best.tokens)


@given(phrases=PHRASES.filter(bool), seed=st.integers(0, 10_000), beams=st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_targets_contain_all_phrases_for_any_phrases(phrases, seed, beams):
    given_phrases = constraints(*((tuple(ids), number) for ids, number in phrases))
    [[best]] = find([seed], [given_phrases], [given_phrases.num_tokens + 1], beams=beams)
    assert is_met(best.tokens, given_phrases)


def log_prob(seed, tokens):
    return sum(next_log_probs(seed, list(tokens[:at]))[one] for at, one in enumerate(tokens))


@pytest.mark.parametrize("phrases", [[(1,)], [(0, 2)], [(2,), (0,)], [(0, 1), (1, 2)], [((1,), 2)]])
@pytest.mark.parametrize(
    "penalty",
    [
        {"length_penalty": 0.0},
        {"length_penalty": 1.0},
        {"length_penalty": 0.6, "length_penalty_kind": "gnmt"},
    ],
)
def test_wide_beam_equals_exhaustive_search(phrases, penalty):
    longest, config = 5, SearchConfig(**penalty)
    given = constraints(*phrases)
    words = range(WORDS)
    targets = [
        (*tokens, END) for size in range(longest) for tokens in product(words, repeat=size)
    ] + list(product(words, repeat=longest))
    for seed in range(5):
        ranked = sorted(
            (tokens for tokens in targets if is_met(tokens, given)),
            key=lambda tokens: -log_prob(seed, tokens) / length_scale(float(len(tokens)), config),
        )
        [found] = find([seed], [given], [longest], beams=400, num_best=5, **penalty)
        assert [one.tokens for one in found] == ranked[:5]
        for one in found:
            scale = length_scale(float(len(one.tokens)), config)
            assert one.value == pytest.approx(one.log_prob / scale, abs=1e-5)
            assert one.log_prob == pytest.approx(log_prob(seed, one.tokens), abs=1e-4)
            assert one.log_prob == pytest.approx(sum(one.step_log_probs), abs=1e-4)


@given(
    sentences=st.lists(
        st.tuples(st.integers(0, 10_000), PHRASES, st.integers(1, 4)), min_size=1, max_size=4
    ),
    beams=st.integers(1, 4),
)
@settings(max_examples=60, deadline=None)
def test_result_of_a_sentence_does_not_depend_on_the_batch(sentences, beams):
    seeds = [seed for seed, _, _ in sentences]
    given_phrases = [
        constraints(*((tuple(ids), number) for ids, number in phrases))
        for _, phrases, _ in sentences
    ]
    limits = [
        one.num_tokens + extra + 1
        for one, (_, _, extra) in zip(given_phrases, sentences, strict=True)
    ]
    together = find(seeds, given_phrases, limits, beams=beams, num_best=beams)
    alone = [
        found
        for one in zip(seeds, given_phrases, limits, strict=True)
        for found in find(*([part] for part in one), beams=beams, num_best=beams)
    ]
    for left, right in zip(together, alone, strict=True):
        assert [one.tokens for one in left] == [one.tokens for one in right]
        assert [one.value for one in left] == pytest.approx([one.value for one in right], abs=1e-5)


@pytest.mark.parametrize("changes", [{"beams": 1}, {"beams": 4}, {"temperature": 1.0}])
def test_sentences_without_phrases_have_the_results_of_plain_search(changes):
    seeds, limits = [3, 4, 5], [6, 7, 8]
    plain = search(
        RandomScorer(*seeds),
        start=START,
        end=END,
        max_lengths=torch.tensor(limits),
        config=SearchConfig(**changes),
    )
    assert find(seeds, [constraints()] * 3, limits, **changes) == plain
    if "temperature" not in changes:
        mixed = find(seeds, [constraints(), constraints((1,)), constraints()], limits, **changes)
        assert [mixed[0], mixed[2]] == [plain[0], plain[2]]
        assert 1 in mixed[1][0].tokens


def test_hypotheses_with_more_phrases_win_at_the_maximum_length():
    # Token 5 has probability zero: the second phrase cannot be generated.
    given = constraints((2, 0, 2), (5,))
    for seed in range(10):
        [[best]] = find([seed], [given], [6])
        assert count(best.tokens, (2, 0, 2)) == 1
        assert len(best.tokens) == 6


def test_phrases_end_at_the_end_of_a_word():
    # Token 1 continues a word, token 2 is a bracket: the word may go on after a bracket only.
    begins = torch.ones(SIZE, dtype=torch.bool)
    begins[1] = False
    opens = torch.zeros(SIZE, dtype=torch.bool)
    opens[2] = True
    followers = set()
    for seed in range(40):
        [[best]] = find([seed], [constraints((0,))], [6], vocabulary=Vocabulary(begins, opens))
        index = best.tokens.index(0)
        followers |= set(best.tokens[index + 1 : index + 2])
    assert followers == {0, 2, END}


def test_form_after_a_separator_counts_as_the_phrase():
    # Token 2 opens a word. The phrase is token 0, or token 1 after token 2.
    opens = torch.zeros(SIZE, dtype=torch.bool)
    opens[2] = True
    vocabulary = Vocabulary(torch.ones(SIZE, dtype=torch.bool), opens, space=2)
    given = LexicalConstraints((Phrase(((0,), (SEPARATOR, 1)), "phrase"),))
    found = [find([seed], [given], [4], vocabulary=vocabulary)[0][0].tokens for seed in range(40)]
    assert all(0 in tokens or count(tokens, (2, 1)) for tokens in found)
    assert any(0 not in tokens for tokens in found)


def test_separator_of_the_first_form_is_generated():
    opens = torch.zeros(SIZE, dtype=torch.bool)
    opens[2] = True
    vocabulary = Vocabulary(torch.ones(SIZE, dtype=torch.bool), opens, space=2)
    given = LexicalConstraints((Phrase(((SEPARATOR, 1),), "phrase"),))
    for seed in range(10):
        [[best]] = find([seed], [given], [4], vocabulary=vocabulary)
        assert count(best.tokens, (2, 1))
    opens[START] = True
    found = [find([seed], [given], [4], vocabulary=vocabulary)[0][0].tokens for seed in range(40)]
    assert all(tokens[0] == 1 or count(tokens, (2, 1)) for tokens in found)
    assert any(tokens[0] == 1 for tokens in found)


def test_too_many_tokens_are_refused():
    message = r"\(4 tokens\), but the phrases '\(0, 1\)', '\(2, 2\)' .* have 5 tokens"
    with pytest.raises(ConfigError, match=message):
        find([1], [constraints((0, 1), (2, 2))], [4])
    find([1], [constraints((0, 1), (2, 2))], [5])


@pytest.mark.parametrize("kind", ["length", "gnmt"])
def test_bound_finds_what_search_without_an_end_finds(kind):
    seeds, given = list(range(12)), [constraints((1,), (0, 2))] * 12
    common = {"beams": 3, "num_best": 2, "length_penalty_kind": kind, "length_penalty": 0.8}
    expected = find(seeds, given, [9] * 12, stopping="none", **common)
    assert find(seeds, given, [9] * 12, stopping="bound", **common) == expected
    default = find(seeds, given, [9] * 12, **common)
    pairs = [(one[0].value, best[0].value) for one, best in zip(default, expected, strict=True)]
    assert all(value <= best for value, best in pairs)


def test_search_without_an_end_takes_all_steps():
    steps = {}
    for stopping in ("heuristic", "none"):
        scorer = RandomScorer(1)
        search(
            LexicalScorer(scorer, [constraints((0,))], WORD_TOKENS),
            start=START,
            end=END,
            max_lengths=torch.tensor([40]),
            config=SearchConfig(beams=4, stopping=stopping),
        )
        steps[stopping] = scorer.num_steps
    assert steps["heuristic"] < steps["none"] == 40


@pytest.mark.parametrize(
    ("changes", "default"),
    [
        ({"temperature": 0.5}, 0),
        ({"consensus": 4}, 0),
        ({"coverage_penalty": 0.2}, 0),
        ({"groups": 2}, 1),
    ],
)
def test_settings_that_would_break_the_constraints_are_refused(changes, default):
    (name,) = changes
    with pytest.raises(ConfigError, match=rf"^`search\.{name}` must be {default} with required"):
        find([1], [constraints((0,))], [4], **changes)


def test_recording_is_refused():
    with record_trees(), pytest.raises(ConfigError, match="^A beam tree must be of a search"):
        find([1], [constraints((0,))], [4])
    with record_trees() as recorder:
        find([1], [constraints()], [4])
    assert recorder.num_searches == 1


def test_more_predictions_than_beams_are_refused():
    with pytest.raises(ConfigError, match="`nbest` must be at most the number of beams"):
        find([1], [constraints((0,))], [4], beams=2, num_best=3)


def test_other_constraints_apply_as_well():
    for seed in range(10):
        [[best]] = find([seed], [constraints((1,))], [8], no_repeat_ngram=1, min_length=3)
        words = [token for token in best.tokens if token != END]
        assert len(words) == len(set(words)) == WORDS
