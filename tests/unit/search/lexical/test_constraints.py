from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.search.lexical.constraints import (
    ForbiddenPhrase,
    LexicalConstraints,
    LexicalScorer,
    Vocabulary,
)
from regard.search.search import search
from regard.search.settings import SearchConfig
from tests.unit.search.random_scorer import (
    END,
    SIZE,
    START,
    WORDS,
    RandomScorer,
    next_log_probs,
)

# Token 2 opens a word: after it, a word begins without whitespace.
OPENS = torch.tensor([False, False, True, False, False, False])
VOCABULARY = Vocabulary(torch.ones(SIZE, dtype=torch.bool), OPENS)


def words(*tokens, is_free=False):
    """A phrase of which every token is one character; the first has whitespace in it."""
    edges = [(0, tokens[0], 2)]
    edges += [(index, token, index + 1) for index, token in enumerate(tokens[1:], start=2)]
    return ForbiddenPhrase(tuple(edges), len(tokens) + 1, is_free, str(tokens))


def find(seeds, forbidden, limit=5, **changes):
    """The best target of each sentence with forbidden phrases."""
    constraints = [LexicalConstraints(forbidden=tuple(phrases)) for phrases in forbidden]
    results = search(
        LexicalScorer(RandomScorer(*seeds), constraints, VOCABULARY),
        start=START,
        end=END,
        max_lengths=torch.tensor([limit] * len(seeds)),
        config=SearchConfig(**changes),
    )
    return [best.tokens for best, *_ in results]


def contains(tokens, phrase):
    return any(tokens[at : at + len(phrase)] == phrase for at in range(len(tokens)))


@pytest.mark.parametrize("changes", [{"beams": 1}, {"beams": 5}, {"temperature": 1.0}])
@pytest.mark.parametrize("phrase", [(0,), (1, 0), (2, 2), (0, 1, 2)])
def test_forbidden_phrase_is_never_generated(phrase, changes):
    seeds = range(100)
    plain = find(seeds, [[]] * len(seeds), **changes)
    assert any(contains(tokens, phrase) for tokens in plain)
    found = find(seeds, [[words(*phrase)]] * len(seeds), **changes)
    assert not any(contains(tokens, phrase) for tokens in found)


def log_prob(seed, tokens):
    return sum(next_log_probs(seed, list(tokens[:at]))[one] for at, one in enumerate(tokens))


def test_wide_beam_equals_exhaustive_search():
    phrases = [(0, 1), (2,)]
    sizes = [range(WORDS)] * 4
    targets = [(*tokens, END) for size in range(4) for tokens in product(*sizes[:size])]
    targets += product(*sizes)
    allowed = [one for one in targets if not any(contains(one, phrase) for phrase in phrases)]
    for seed in range(10):
        [found] = find([seed], [[words(*phrase) for phrase in phrases]], 4, beams=300)
        assert found == max(allowed, key=lambda tokens: log_prob(seed, tokens) / len(tokens))


def test_sentences_have_their_own_phrases():
    forbidden = [[words(0)], [], [words(1, 2), words(0)], [words(2)]]
    together = find([1, 2, 3, 4], forbidden)
    alone = [find([seed], [phrases])[0] for seed, phrases in enumerate(forbidden, start=1)]
    assert together == alone


@given(st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=2), min_size=1))
@settings(max_examples=30, deadline=None)
def test_result_of_a_sentence_does_not_depend_on_the_batch(pairs):
    forbidden = [[words(*tokens) for tokens in phrases] for phrases in pairs]
    seeds = range(len(pairs))
    alone = [find([seed], [phrases])[0] for seed, phrases in zip(seeds, forbidden, strict=True)]
    assert find(seeds, forbidden) == alone


def test_all_ways_to_spell_a_phrase_are_forbidden():
    # Tokens: 0 = "▁a", 1 = "b", 2 = "▁ab".
    phrase = ForbiddenPhrase(((0, 0, 2), (2, 1, 3), (0, 2, 3)), 3, is_free=False, text="ab")
    seeds = range(40)
    for tokens in find(seeds, [[phrase]] * len(seeds)):
        assert 2 not in tokens
        assert not contains(tokens, (0, 1))


def test_word_without_whitespace_is_forbidden_after_a_token_that_opens_one():
    # Token 1 = "b" is the phrase, with or without whitespace before it; token 2 = "(".
    phrase = ForbiddenPhrase(((1, 1, 2),), 2, is_free=False, text="b")
    seeds = range(40)
    found = find(seeds, [[phrase]] * len(seeds))
    assert not any(contains(tokens, (2, 1)) for tokens in found)
    assert any(contains(tokens, (0, 1)) for tokens in found)
    free = ForbiddenPhrase(((1, 1, 2),), 2, is_free=True, text="b")
    assert not any(1 in tokens for tokens in find(seeds, [[free]] * len(seeds)))


def test_a_phrase_is_generated_if_all_other_tokens_are_forbidden():
    everything = [words(token) for token in (0, 1, 2, END)]
    plain = find([7], [[]], beams=1)
    assert find([7], [everything], beams=1) == plain
