import struct

import pytest

from regard.core.errors import CheckpointError
from regard.data.text.tokenizers import Tokenizer
from regard.interop.huggingface.sentencepiece import (
    SentencePieceModel,
    build_unigram,
    read_sentencepiece,
)

CONTROL, UNKNOWN, BYTE = 3, 2, 6


def block(number, content):
    """A field of a protocol buffer that holds bytes."""
    assert len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


def entry(text, score, kind=1):
    score_field = bytes([2 << 3 | 5]) + struct.pack("<f", score)
    return block(1, block(1, text.encode()) + score_field + bytes([3 << 3, kind]))


def write(path, *entries, kind=1):
    trainer = block(2, bytes([3 << 3, kind]))
    path.write_bytes(b"".join(entries) + trainer + block(3, block(2, b"")))
    return path


def test_tokens_and_scores_are_read(tmp_path):
    path = write(
        tmp_path / "a.spm",
        entry("<unk>", 0.0, UNKNOWN),
        entry("</s>", 0.0, CONTROL),
        entry("▁ä", -1.5),
        entry("b", -2.0),
    )
    model = read_sentencepiece(path)
    assert model.scores == {"▁ä": -1.5, "b": -2.0}
    assert model.min_score == -2.0


IDS = {"</s>": 0, "<unk>": 1, "▁a": 2, "b": 3, "▁": 4, "▁ab": 5, "c": 6, ">>x<<": 7, "<pad>": 8}
MODEL = SentencePieceModel(scores={"▁a": -1.0, "b": -2.0, "▁": -3.0, "a": -3.5, "zz": -4.0})


@pytest.fixture
def tokenizer():
    return Tokenizer(build_unigram(MODEL, IDS)[0])


def test_tokens_have_the_ids_of_the_vocabulary(tokenizer):
    assert tokenizer.encode("a b") == [2, 4, 3]
    assert (tokenizer.pad, tokenizer.sos, tokenizer.eos, tokenizer.unk) == (8, 8, 0, 1)


def test_token_of_the_other_language_is_decoded_but_never_encoded(tokenizer):
    assert tokenizer.encode("ab") == [2, 3]
    assert tokenizer.decode([5, 3, 2]) == "abb a"


def test_character_of_the_other_language_has_its_own_id(tokenizer):
    assert tokenizer.encode("bcb") == [4, 3, 6, 3]


def test_two_characters_of_the_other_language_are_one_unknown_token(tokenizer):
    assert tokenizer.encode("bccb") == tokenizer.encode("bcxb") == [4, 3, 1, 3]


def test_unknown_characters_are_one_unknown_token(tokenizer):
    assert tokenizer.encode("a xyz b") == [2, 4, 1, 4, 3]


def test_spelling_of_a_special_token_is_encoded_as_text(tokenizer):
    assert not {0, 8} & set(tokenizer.encode("a </s> <pad>b"))


def test_code_of_a_language_is_one_token(tokenizer):
    assert tokenizer.encode(">>x<< a") == [7, 2]


def test_tokens_that_the_vocabulary_lacks_are_counted():
    assert build_unigram(MODEL, IDS)[1] == 2


@pytest.mark.parametrize(
    ("entries", "kind"),
    [([entry("a", -1.0)], 2), ([entry("a", -1.0), entry("<0x00>", 0.0, BYTE)], 1), ([], 1)],
    ids=["pair encoding", "bytes", "empty"],
)
def test_other_kinds_of_models_are_refused(tmp_path, entries, kind):
    path = write(tmp_path / "a.spm", *entries, kind=kind)
    with pytest.raises(CheckpointError, match=r"a\.spm must be a unigram model"):
        read_sentencepiece(path)


@pytest.mark.parametrize("content", [b"\xff\xff", b"\x0a\x7fabc", b"\x0f\x01\x01"])
def test_damaged_file_is_named(tmp_path, content):
    (tmp_path / "a.spm").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"a\.spm is not a SentencePiece model, or is damag"):
        read_sentencepiece(tmp_path / "a.spm")


def test_missing_file_is_named(tmp_path):
    with pytest.raises(CheckpointError, match=r"a\.spm is missing\."):
        read_sentencepiece(tmp_path / "a.spm")
