import pytest

from regard.data.text.field import TextField
from regard.data.text.tokenizers import TokenizerConfig
from regard.data.text.vocabulary import train_tokenizer

TOKENIZER = train_tokenizer(TokenizerConfig(kind="word"), ["a b c"])
A, B, C = 4, 5, 6
SOURCE = TextField(TOKENIZER, has_start=False)
TARGET = TextField(TOKENIZER, has_start=True)


def test_a_source_ends_with_the_end_token():
    assert SOURCE.read("a b") == [A, B, 3]


def test_a_target_has_start_and_end_tokens():
    assert TARGET.read("a b") == [2, A, B, 3]


@pytest.mark.parametrize("field", [SOURCE, TARGET])
def test_many_texts_are_encoded_like_single_texts(field):
    texts = ["a", "", "c b"]
    assert field.read_all(texts) == [field.read(text) for text in texts]


def test_values_are_padded_at_the_end():
    values, _ = SOURCE.stack([[A, B, 3], [3]])
    assert values.tolist() == [[A, B, 3], [3, 0, 0]]


def test_the_mask_marks_real_positions():
    _, mask = SOURCE.stack([[A, B, 3], [3]])
    assert mask.tolist() == [[True, True, True], [True, False, False]]


def test_text_is_decoded_up_to_the_first_end_token():
    assert TARGET.write([2, A, B, 3, C, 3, 0]) == "a b"


def test_text_without_an_end_token_is_decoded_completely():
    assert TARGET.write([A, C]) == "a c"


def test_encoding_and_decoding_restores_the_text():
    assert TARGET.write(TARGET.read("c a b")) == "c a b"


def test_each_of_several_texts_has_its_own_end_token():
    assert TARGET.read(("a b", "c")) == [2, A, B, 3, C, 3]


def test_texts_and_pairs_are_encoded_together_as_separately():
    texts = ["a", ("b", "c a"), "", ("", "b")]
    assert TARGET.read_all(texts) == [TARGET.read(text) for text in texts]


@pytest.mark.parametrize(
    ("text", "max_length", "expected"),
    [
        ("a b c", 5, [2, A, B, C, 3]),
        ("a b c", 4, [2, A, B, 3]),
        (("a b c", "a b"), 6, [2, A, 3, A, B, 3]),
        (("a b c", "c"), 6, [2, A, B, 3, C, 3]),
        (("a", "b"), 3, [2, 3, 3]),
    ],
)
def test_shortened_texts_keep_their_end_tokens(text, max_length, expected):
    found = TARGET.shorten(TARGET.read(text), max_length)
    assert sorted(found) == sorted(expected)
    assert len(found) <= max_length
    assert found[0] == 2 and found[-1] == 3
    assert found.count(3) == expected.count(3)


def test_texts_with_unknown_tokens_are_counted(caplog):
    TARGET.warn_of_unknown(["a b", "a x b", ("a", "y")], "targets")
    assert caplog.messages == [
        "2 of 3 targets contain tokens that are not in the vocabulary (first: 'x', in number 2)."
    ]


def test_nothing_is_logged_for_known_texts(caplog):
    TARGET.warn_of_unknown(["a b", ("a", "b")], "targets")
    assert not caplog.messages
