import itertools

import pytest

from regard.core.errors import DataError
from regard.data.text.tokenizers import TokenizerConfig
from regard.data.text.vocabulary import train_tokenizer
from regard.tasks.masked_lm.masked_text import (
    check_masks,
    encode_masked,
    fill_masks,
    has_mask,
)


@pytest.fixture(scope="module", params=["word", "wordpiece", "bpe", "char", "byte"])
def tokenizer(request):
    config = TokenizerConfig(kind=request.param, vocab_size=300, extra_tokens=("<mask>",))
    return train_tokenizer(config, ["the cat, the dog and the six wet foxes ran away. x"] * 3)


def read(line, tokenizer):
    return encode_masked(line, tokenizer, itertools.repeat(tokenizer.mask))


@pytest.mark.parametrize(
    ("line", "whole"),
    [
        ("the ___ ran away.", "the cat ran away."),
        ("<mask> cat, the dog", "the cat, the dog"),
        ("the cat [MASK]", "the cat ran"),
        ("the six <mask>, away.", "the six foxes, away."),
        ("the <mask> fo___", "the cat fo dog"),
    ],
)
def test_all_but_the_gaps_is_cut_as_ever(line, whole, tokenizer):
    gaps = read(line, tokenizer)
    plain = tokenizer.encode(whole)
    assert gaps.values[0] == tokenizer.sos
    assert gaps.values[-1] == tokenizer.eos
    assert [gaps.values[place] for place in gaps.positions] == [tokenizer.mask] * len(
        gaps.positions
    )
    before, after = gaps.values[1 : gaps.positions[0]], gaps.values[gaps.positions[-1] + 1 : -1]
    # With bytes a blank is a token of its own, which the gap does not take along.
    assert plain[: len(before)] == before
    assert plain[len(plain) - len(after) :] == after


def test_every_gap_has_the_next_mark(tokenizer):
    gaps = encode_masked("the ___ and ___ ran ___", tokenizer, [7, 8, 9])
    assert [gaps.values[place] for place in gaps.positions] == [7, 8, 9]


def test_a_line_without_gaps_is_read_whole(tokenizer):
    assert read("the cat ran", tokenizer).values[1:-1] == tokenizer.encode("the cat ran")


def test_an_x_of_the_text_is_no_gap(tokenizer):
    gaps = read("x six ___ x", tokenizer)
    assert len(gaps.positions) == 1


def test_gaps_have_three_spellings():
    assert all(map(has_mask, ("a <mask>", "[MASK] b", "___", "a ____ b")))
    assert not any(map(has_mask, ("a mask", "a __ b", "[mask]", "snake_case")))


def test_words_go_into_the_gaps_in_order():
    assert fill_masks("the ___ and <mask>.", ["cat", "dog"]) == "the cat and dog."
    assert fill_masks("the ___ and <mask>.", ["cat"]) == "the cat and ."


@pytest.mark.parametrize("gap", ["<MASK>", "[mask]", "(blank)", "{gap}", "__"])
def test_what_was_meant_as_a_gap_is_guessed(gap):
    with pytest.raises(DataError, match=r"Line 1 must have a gap.*Did you mean '<mask>' by"):
        check_masks([f"the {gap} ran"])


def test_a_long_line_is_cut_in_the_message():
    with pytest.raises(DataError, match=r"word …'\.$"):
        check_masks(["word " * 11 + "word  and more"])


def test_an_empty_line_needs_no_gap():
    check_masks(["", "  "])
