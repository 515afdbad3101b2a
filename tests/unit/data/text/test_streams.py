import pytest

from regard.data.text.tokenizers import TokenizerConfig
from regard.data.text.vocabulary import train_tokenizer
from regard.data.text.windows import StreamField, group_by_length

LINES = ["the <unk> cat\n", "\n", "  a cat \n", "the end"]


def field(kind):
    tokenizer = train_tokenizer(TokenizerConfig(kind=kind, vocab_size=50), LINES)
    return StreamField(tokenizer, is_exact=kind == "byte")


def test_bytes_restore_the_text_exactly():
    exact = field("byte")
    stream = exact.stream(LINES)
    assert stream[0] == exact.line_end
    assert exact.write(stream[1:].tolist()) == "".join(LINES)
    assert len(stream) == 1 + len("".join(LINES).encode())


def test_words_end_their_lines_with_the_end_token():
    words = field("whitespace")
    tokens = [words.tokenizer.token(index) for index in words.stream(LINES)]
    expected = "<eos> ▁the ▁<unk> ▁cat <eos> <eos> ▁a ▁cat <eos> ▁the ▁end"
    assert tokens == expected.split()


def test_the_sign_of_unknown_tokens_in_a_text_is_a_word():
    words = field("whitespace")
    assert words.tokenizer.unk not in words.stream(LINES)


@pytest.mark.parametrize("kind", ["byte", "whitespace"])
def test_lines_are_restored(kind):
    lines = ["the cat\n", "a cat"]
    some = field(kind)
    ids = [index for line in some.read_all(lines) for index in line]
    assert some.write(ids) == "the cat\na cat"
    assert some.read(lines[1]) == ids[len(some.read(lines[0])) :]


def test_texts_are_stacked_after_a_line_end():
    words = field("whitespace")
    stacked = words.stack([[7, 8], [9]])
    assert stacked.tolist() == [[words.line_end, 7, 8], [words.line_end, 9, words.tokenizer.pad]]


def test_groups_hold_texts_of_similar_length_within_the_budget():
    texts = [[1] * length for length in (3, 9, 1, 30, 4)]
    assert group_by_length(texts, 12) == [[3], [1], [4, 0], [2]]
    assert group_by_length([], 12) == []
