import random
import unicodedata

import pytest

from regard.core.errors import CheckpointError, ConfigError, DataError
from regard.data.text.tokenizers import Tokenizer, TokenizerConfig, split_words
from regard.data.text.vocabulary import TOKENIZERS, train_tokenizer

TEXTS = [
    "Ich weiß, dass er kommt.",
    "I don't know: 3.5 (so) is well-known!",
    'Sie sagt: "Über uns?" – 100 % [ja]; nein.',
    "Das Haus ist groß, und die Häuser sind groß.",
]
KINDS = list(TOKENIZERS)
LEARNED = ["bpe", "unigram", "wordpiece"]


def show(tokenizer, text):
    """Return the tokens of a text."""
    return list(tokenizer.tokens(tokenizer.encode(text)))


def train(kind, texts=TEXTS, **settings):
    return train_tokenizer(TokenizerConfig(kind=kind, **settings), texts)


def random_texts(parts, *, max_parts=5):
    generator = random.Random(0)
    for _ in range(50):
        sizes = [generator.randint(1, max_parts) for _ in range(generator.randint(1, 9))]
        yield " ".join("".join(generator.choices(parts, k=size)) for size in sizes)


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request):
    return train(request.param, vocab_size=300)


def test_the_text_is_restored(tokenizer):
    assert [tokenizer.decode(tokenizer.encode(text)) for text in TEXTS] == TEXTS


@pytest.mark.parametrize("is_lower_cased", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_is_encoded_like_single_texts(kind, is_lower_cased):
    tokenizer = train(kind, vocab_size=300, is_lower_cased=is_lower_cased)
    spaces = ["  ", "\t", "\u00a0", "\u3000", "\u2028", "\u200b", "\x1c", "\x85"]
    parts = ["a", "Groß", "e", "\u0301", "▁", "Σ", ".", "<eos>", "日", *spaces]
    texts = ["", " ", *TEXTS, *random_texts(parts)]
    assert tokenizer.encode_batch(texts) == [tokenizer.encode(text) for text in texts]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("word", "whitespace")])
def test_texts_of_known_characters_are_restored(kind):
    tokenizer = train(kind, vocab_size=300)
    characters = sorted({character for text in TEXTS for character in text} - {" "})
    for text in random_texts(characters):
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_texts_of_known_words_are_restored():
    tokenizer = train("word")
    for text in random_texts(" ".join(TEXTS).split(), max_parts=1):
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_decomposed_letters_are_composed(tokenizer):
    decomposed = unicodedata.normalize("NFD", TEXTS[3])
    assert tokenizer.encode(decomposed) == tokenizer.encode(TEXTS[3])


def test_many_texts_are_encoded_like_single_ones(tokenizer):
    assert tokenizer.encode_batch(TEXTS) == [tokenizer.encode(text) for text in TEXTS]


def test_special_tokens_have_fixed_ids(tokenizer):
    roles = [tokenizer.pad, tokenizer.unk, tokenizer.sos, tokenizer.eos]
    assert roles == [0, 1, 2, 3]


def test_special_tokens_have_fixed_spellings(tokenizer):
    assert [tokenizer.token(i) for i in range(4)] == ["<pad>", "<unk>", "<sos>", "<eos>"]


def test_special_tokens_are_not_decoded(tokenizer):
    ids = [tokenizer.sos, *tokenizer.encode(TEXTS[0]), tokenizer.eos, tokenizer.pad]
    assert tokenizer.decode(ids) == TEXTS[0]


def test_the_spelling_of_a_special_token_is_encoded_as_text(tokenizer):
    assert not {tokenizer.pad, tokenizer.sos, tokenizer.eos} & {*tokenizer.encode("<eos> <pad>")}


def test_an_empty_text_has_no_tokens(tokenizer):
    assert tokenizer.encode("") == []


def test_no_tokens_are_an_empty_text(tokenizer):
    assert tokenizer.decode([]) == ""


def test_every_id_is_a_token(tokenizer):
    tokens = {tokenizer.token(index) for index in range(tokenizer.vocab_size)}
    assert len(tokens) == tokenizer.vocab_size


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "whitespace"])
def test_every_token_has_the_index_of_its_word(kind):
    tokenizer = train(kind)
    text = TEXTS[1]
    words = ["" for _ in split_words(text)]
    for index, piece in zip(
        tokenizer.word_index(text), tokenizer.tokens(tokenizer.encode(text)), strict=True
    ):
        words[index] += piece.replace("▁", "")
    assert words == split_words(text)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "whitespace"])
def test_whitespace_and_unicode_form_do_not_change_word_indexes(kind):
    tokenizer = train(kind)
    text = unicodedata.normalize("NFD", "  Über   uns, Häuser ")
    assert sorted(set(tokenizer.word_index(text))) == [0, 1, 2, 3]


def test_a_space_belongs_to_the_next_word(tokenizer):
    text = "Haus, Haus"
    pairs = zip(tokenizer.tokens(tokenizer.encode(text)), tokenizer.word_index(text), strict=True)
    assert {index for piece, index in pairs if piece.startswith("▁")} <= {0, 2}


def test_every_token_of_a_text_without_words_has_a_word_index(tokenizer):
    assert set(tokenizer.word_index(" ")) <= {0}


def test_a_saved_tokenizer_is_loaded_unchanged(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "tokenizer.json")
    loaded = Tokenizer.load(tmp_path / "tokenizer.json")
    assert loaded.encode_batch([*TEXTS, "<eos> 日本"]) == tokenizer.encode_batch(
        [*TEXTS, "<eos> 日本"]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_training_is_deterministic(kind, tmp_path):
    for name in ("one", "two"):
        train(kind, vocab_size=60).save(tmp_path / name)
    assert (tmp_path / "one").read_text() == (tmp_path / "two").read_text()


@pytest.mark.parametrize("kind", [*LEARNED, "word", "char"])
@pytest.mark.parametrize("vocab_size", [10, 40, 70])
def test_the_vocabulary_stays_below_its_limit(kind, vocab_size):
    assert train(kind, vocab_size=vocab_size).vocab_size <= vocab_size


@pytest.mark.parametrize("kind", ["word", "char"])
def test_the_most_frequent_tokens_are_kept(kind):
    tokenizer = train(kind, ["b b b a a c"], vocab_size=6)
    expected = ["▁b", "▁a"] if kind == "word" else ["▁", "b"]
    assert [tokenizer.token(4), tokenizer.token(5)] == expected


@pytest.mark.parametrize("kind", ["word", "char"])
def test_rare_tokens_are_left_out(kind):
    tokenizer = train(kind, ["b b b a a c"], min_frequency=2)
    assert tokenizer.unk in tokenizer.encode("c") and tokenizer.unk not in tokenizer.encode("a")


@pytest.mark.parametrize("kind", KINDS)
def test_text_can_be_lower_cased(kind):
    tokenizer = train(kind, is_lower_cased=True)
    assert tokenizer.decode(tokenizer.encode("Das HAUS")) == "das haus"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("word", "Ich ⁇, ⁇."),
        ("wordpiece", "Ich ⁇, ⁇."),
        ("char", "Ich ⁇⁇, ⁇a."),
        ("bpe", "Ich ⁇⁇, ⁇a."),
        ("unigram", "Ich ⁇, ⁇a."),
        ("byte", "Ich 日本, Ωa."),
    ],
)
def test_unknown_tokens_are_decoded_as_a_sign(kind, text):
    tokenizer = train(kind)
    assert tokenizer.decode(tokenizer.encode("Ich 日本, Ωa.")) == text


def test_bytes_encode_every_text():
    text = "日本\t🙂  \n\0 ▁<eos> "
    tokenizer = train("byte")
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_bytes_beyond_ascii_are_readable():
    assert show(train("byte"), "a ß\n") == ["a", "▁", "<C3>", "<9F>", "<0A>"]


def test_bytes_need_260_tokens():
    assert train("byte").vocab_size == 260


def test_incomplete_bytes_are_decoded_as_the_replacement_character():
    tokenizer = train("byte")
    assert tokenizer.decode(tokenizer.encode("aß")[:2]) == "a\ufffd"


def test_words_and_punctuation_marks_are_separate_tokens():
    assert show(train("word"), TEXTS[0]) == ["▁Ich", "▁weiß", ",", "▁dass", "▁er", "▁kommt", "."]


@pytest.mark.parametrize("kind", LEARNED)
def test_a_token_never_crosses_a_punctuation_mark(kind):
    tokenizer = train(kind, ["kommt. kommt. kommt."] * 50)
    assert show(tokenizer, "kommt.")[-1] == "."


@pytest.mark.parametrize("kind", LEARNED)
def test_subwords_are_learned(kind):
    assert "▁Haus" in show(train(kind, ["Haus Maus Haus aus"] * 50), "Haus")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "byte"])
def test_any_run_of_whitespace_is_one_space(kind):
    tokenizer = train(kind)
    assert tokenizer.decode(tokenizer.encode(" Das \t\u00a0Haus\n")) == "Das Haus"


@pytest.mark.parametrize("kind", KINDS)
def test_a_million_characters_without_a_space_are_encoded(kind):
    text = "ab" * 500_000
    tokenizer = train(kind, ["ab a b"])
    known = "⁇" if kind in ("word", "whitespace", "wordpiece") else text
    assert tokenizer.decode(tokenizer.encode(text)) == known


@pytest.mark.parametrize("kind", ["bpe", "wordpiece"])
def test_a_very_long_word_does_not_stop_the_training(kind):
    generator = random.Random(0)
    text = "".join(generator.choices("abcdefgh", k=100_000))
    assert train(kind, [text], vocab_size=500).vocab_size == 500


@pytest.mark.parametrize("kind", KINDS)
def test_training_without_text_is_an_error(kind):
    with pytest.raises(DataError, match=r"needs text to learn from, but all texts are empty\."):
        train(kind, [""])


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(CheckpointError, match=r"tokenizer\.json is missing\. Is .* a run folder"):
        Tokenizer.load(tmp_path / "tokenizer.json")


@pytest.mark.parametrize("content", [b"", b'{"model": 3}', b"\xff\xfe"])
def test_a_damaged_file_is_an_error(tmp_path, content):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(
        CheckpointError, match=r"is not (a tokenizer: .*|valid UTF-8.*) is damaged\."
    ):
        Tokenizer.load(path)


def test_a_file_that_is_not_a_tokenizer_is_an_error(tmp_path):
    path = tmp_path / "tokenizer.json"
    train("word").save(path)
    path.write_text(path.read_text().replace("<eos>", "END"))
    with pytest.raises(CheckpointError, match="must hold a token spelled one of '<eos>', '.SEP.'"):
        Tokenizer.load(path)


def test_other_spellings_of_special_tokens_are_recognised(tmp_path):
    path = tmp_path / "tokenizer.json"
    train("word").save(path)
    text = path.read_text().replace("<eos>", "[SEP]").replace("<sos>", "[CLS]")
    path.write_text(text)
    tokenizer = Tokenizer.load(path)
    assert (tokenizer.pad, tokenizer.unk, tokenizer.sos, tokenizer.eos) == (0, 1, 2, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_is_encoded_as_an_extra_token(kind):
    config = TokenizerConfig(kind=kind, vocab_size=400, extra_tokens=("<mask>",))
    tokenizer = train_tokenizer(config, [*TEXTS, "<mask>"])
    assert tokenizer.token(tokenizer.mask) == "<mask>"
    assert tokenizer.mask not in tokenizer.encode("a <mask> b")


def test_a_vocabulary_without_a_mask_token_is_an_error():
    with pytest.raises(ConfigError, match=r"no mask token\. Give"):
        _ = train("word").mask


def test_words_between_whitespace_are_single_tokens():
    tokenizer = train_tokenizer(TokenizerConfig(kind="whitespace"), ["to be , or <unk> @-@ be"])
    assert show(tokenizer, "be , <unk> @-@") == ["▁be", "▁,", "▁<unk>", "▁@-@"]
    assert tokenizer.encode("never") == [tokenizer.unk]


def test_a_vocabulary_has_at_least_one_ordinary_token():
    with pytest.raises(ConfigError, match=r"`vocab_size` must be at least 5, but is 4\."):
        TokenizerConfig(vocab_size=4)


def test_the_minimum_frequency_is_one():
    with pytest.raises(ConfigError, match=r"`min_frequency` must be at least 1, but is 0\."):
        TokenizerConfig(min_frequency=0)


def test_an_unknown_kind_is_an_error():
    with pytest.raises(ConfigError, match=r"`kind` must be one of .* but is 'bpee'\. Did you mean"):
        train("bpee")


def test_special_tokens_are_found_by_their_spelling():
    tokenizer = train_tokenizer(TokenizerConfig(kind="word", extra_tokens=("<x0>",)), ["a b"])
    assert tokenizer.token(tokenizer.find("<x0>")) == "<x0>"
    with pytest.raises(ConfigError, match=r"no token '<x1>'\. Give the tokenizer `extra_tokens`"):
        tokenizer.find("<x1>")


def test_words_start_with_spaces_and_marks_are_words():
    tokenizer = train_tokenizer(TokenizerConfig(kind="wordpiece", vocab_size=40), ["aba abc, bca."])
    begins = dict(zip(tokenizer.tokens_in_order(), tokenizer.word_starts(), strict=True))
    assert all(is_first == (token[0] in "▁,.<") for token, is_first in begins.items())


def test_spans_are_the_positions_of_tokens_in_the_text():
    tokenizer = train_tokenizer(TokenizerConfig(kind="word"), ["big cats, small dogs"])
    text = "small  cats, dogs"
    parts = [text[start:end].strip() for start, end in tokenizer.spans(text)]
    assert parts == ["small", "cats", ",", "dogs"]


def test_tokens_are_those_of_single_ids():
    tokenizer = train_tokenizer(TokenizerConfig(kind="word"), ["a b c"])
    assert tokenizer.tokens(tokenizer.encode("c a")) == ("▁c", "▁a")


def test_text_with_half_a_character_is_refused(tokenizer):
    for encode in (tokenizer.encode, lambda text: tokenizer.encode_batch(["a", text])):
        with pytest.raises(DataError, match="udcff' is not valid Unicode"):
            encode("a \udcff")
