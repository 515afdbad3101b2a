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
    ("line", "filled"),
    [
        ("the ___ ran away.", "the cat ran away."),
        ("<mask> cat, the dog", "the cat, the dog"),
        ("the cat [MASK]", "the cat ran"),
        ("the six <mask>, away.", "the six foxes, away."),
        ("the <mask> fo___", "the cat fo dog"),
    ],
)
def test_text_around_masks_is_tokenised_as_usual(line, filled, tokenizer):
    masked = read(line, tokenizer)
    plain = tokenizer.encode(filled)
    assert masked.values[0] == tokenizer.sos
    assert masked.values[-1] == tokenizer.eos
    assert [masked.values[position] for position in masked.positions] == [tokenizer.mask] * len(
        masked.positions
    )
    before, after = (
        masked.values[1 : masked.positions[0]],
        masked.values[masked.positions[-1] + 1 : -1],
    )
    # With bytes, a space is a separate token, which the mask does not include.
    assert plain[: len(before)] == before
    assert plain[len(plain) - len(after) :] == after


def test_masks_get_the_given_tokens_in_order(tokenizer):
    masked = encode_masked("the ___ and ___ ran ___", tokenizer, [7, 8, 9])
    assert [masked.values[position] for position in masked.positions] == [7, 8, 9]


def test_line_without_masks_has_no_mask_positions(tokenizer):
    assert read("the cat ran", tokenizer).values[1:-1] == tokenizer.encode("the cat ran")


def test_the_placeholder_letter_in_a_text_is_not_a_mask(tokenizer):
    masked = read("x six ___ x", tokenizer)
    assert len(masked.positions) == 1


def test_masks_have_three_spellings():
    assert all(map(has_mask, ("a <mask>", "[MASK] b", "___", "a ____ b")))
    assert not any(map(has_mask, ("a mask", "a __ b", "[mask]", "snake_case")))


def test_masks_are_filled_in_order():
    assert fill_masks("the ___ and <mask>.", ["cat", "dog"]) == "the cat and dog."
    assert fill_masks("the ___ and <mask>.", ["cat"]) == "the cat and ."


@pytest.mark.parametrize("spelling", ["<MASK>", "[mask]", "(blank)", "__"])
def test_error_suggests_the_spelling_of_a_mask(spelling):
    with pytest.raises(DataError, match=r"Line 1 must have a mask.*Did you mean '<mask>' by"):
        check_masks([f"the {spelling} ran"])


def test_a_long_line_is_truncated_in_the_message():
    with pytest.raises(DataError, match=r"word …'\.$"):
        check_masks(["word " * 11 + "word  and more"])


def test_an_empty_line_needs_no_mask():
    check_masks(["", "  "])
