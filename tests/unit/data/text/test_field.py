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


def test_a_target_has_both_ends():
    assert TARGET.read("a b") == [2, A, B, 3]


@pytest.mark.parametrize("field", [SOURCE, TARGET])
def test_many_texts_are_read_like_single_ones(field):
    texts = ["a", "", "c b"]
    assert field.read_all(texts) == [field.read(text) for text in texts]


def test_values_are_padded_at_the_end():
    values, _ = SOURCE.stack([[A, B, 3], [3]])
    assert values.tolist() == [[A, B, 3], [3, 0, 0]]


def test_the_mask_marks_real_positions():
    _, mask = SOURCE.stack([[A, B, 3], [3]])
    assert mask.tolist() == [[True, True, True], [True, False, False]]


def test_text_is_written_up_to_the_first_end_token():
    assert TARGET.write([2, A, B, 3, C, 3, 0]) == "a b"


def test_text_without_an_end_token_is_written_whole():
    assert TARGET.write([A, C]) == "a c"


def test_reading_and_writing_gives_the_text_back():
    assert TARGET.write(TARGET.read("c a b")) == "c a b"


def test_each_of_several_texts_has_its_own_end():
    assert TARGET.read(("a b", "c")) == [2, A, B, 3, C, 3]


def test_texts_and_pairs_are_read_together_like_alone():
    texts = ["a", ("b", "c a"), "", ("", "b")]
    assert TARGET.read_all(texts) == [TARGET.read(text) for text in texts]


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [
        ("a b c", 5, [2, A, B, C, 3]),
        ("a b c", 4, [2, A, B, 3]),
        (("a b c", "a b"), 6, [2, A, 3, A, B, 3]),
        (("a b c", "c"), 6, [2, A, B, 3, C, 3]),
        (("a", "b"), 3, [2, 3, 3]),
    ],
)
def test_shortened_texts_keep_their_ends(text, most, expected):
    found = TARGET.shorten(TARGET.read(text), most)
    assert sorted(found) == sorted(expected)
    assert len(found) <= most
    assert found[0] == 2 and found[-1] == 3
    assert found.count(3) == expected.count(3)


def test_what_was_never_seen_is_counted_and_named(caplog):
    TARGET.warn_of_unknown(["a b", "a x b", ("a", "y")], "targets")
    assert caplog.messages == [
        "2 of 3 targets hold something that the vocabulary has never seen "
        "(first: 'x', in number 2)."
    ]


def test_known_texts_are_passed_in_silence(caplog):
    TARGET.warn_of_unknown(["a b", ("a", "b")], "targets")
    assert not caplog.messages
