import json

import pytest
import tokenizers as library
from tokenizers import decoders, models

from regard.core.errors import CheckpointError
from regard.interop.huggingface.vocabularies import read_vocabulary, write_vocabulary

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


@pytest.fixture
def save(tmp_path):
    """Function that writes tokens to a tokenizer.json."""

    def write(tokens, *, has_decoder=True):
        vocabulary = tokens if isinstance(tokens, dict) else {t: i for i, t in enumerate(tokens)}
        trained = library.Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
        if has_decoder:
            trained.decoder = decoders.WordPiece()
        trained.save(str(tmp_path / "tokenizer.json"))
        return tmp_path

    return write


def test_special_tokens_are_recognised_by_their_spelling(save):
    tokenizer = read_vocabulary(save([*SPECIAL, "a"]), 5)
    assert (tokenizer.pad, tokenizer.unk, tokenizer.sos, tokenizer.eos) == (0, 1, 2, 3)


def test_vocabulary_is_padded_to_the_number_of_embeddings(save):
    tokenizer = read_vocabulary(save([*SPECIAL, "a"]), 8)
    assert tokenizer.vocab_size == 8
    assert tokenizer.token(7) == "<unused_7>"
    assert tokenizer.encode("<unused_7>") == [1]


def test_more_tokens_than_embeddings_are_refused(save):
    with pytest.raises(CheckpointError, match=r"has 6 tokens, but `vocab_size` is 5\. Is it ano"):
        read_vocabulary(save([*SPECIAL, "a", "b"]), 5)


def test_missing_id_is_refused(save):
    folder = save({**{token: i for i, token in enumerate(SPECIAL)}, "a": 9})
    with pytest.raises(CheckpointError, match="5 token ids must be consecutive from 0, but"):
        read_vocabulary(folder, 10)


def test_all_roles_without_a_token_are_named(save):
    with pytest.raises(
        CheckpointError,
        match=r"has none for `sos` \(one of .+\), `eos` \(one of .+\)\.$",
    ):
        read_vocabulary(save(["[PAD]", "[UNK]"]), 5)


def test_vocabulary_without_a_decoder_is_refused(save):
    with pytest.raises(CheckpointError, match=r"must have a `decoder`"):
        read_vocabulary(save([*SPECIAL, "a"], has_decoder=False), 5)


def test_folder_without_a_vocabulary_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match=r"must hold a vocabulary \(tokenizer\.json, vocab"):
        read_vocabulary(tmp_path, 5)


def test_lower_case_is_a_setting_of_the_folder(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL, "A", "a"]) + "\n", encoding="utf-8")
    assert read_vocabulary(tmp_path, 6).encode("A") == [5]
    settings = json.dumps({"do_lower_case": False})
    (tmp_path / "tokenizer_config.json").write_text(settings, encoding="utf-8")
    assert read_vocabulary(tmp_path, 6).encode("A") == [4]


def test_written_vocabulary_is_read_again(save, tmp_path):
    tokenizer = read_vocabulary(save([*SPECIAL, "[MASK]", "a"]), 6)
    out = tmp_path / "out"
    out.mkdir()
    write_vocabulary(tokenizer, out, max_length=7, has_segments=True)
    again = read_vocabulary(out, 6)
    assert again.encode("a") == tokenizer.encode("a") == [5]
    written = library.Tokenizer.from_file(str(out / "tokenizer.json"))
    pair = written.encode("a", "a")
    assert (pair.ids, pair.type_ids) == ([2, 5, 3, 5, 3], [0, 0, 0, 1, 1])
    special = json.loads((out / "special_tokens_map.json").read_text(encoding="utf-8"))
    assert special["mask_token"] == "[MASK]"
