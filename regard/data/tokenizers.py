"""Text ⇄ token ids: words, characters, bytes or learned pieces, on the `tokenizers` library.

Every kind but `byte` marks a blank by `▁` on the piece that follows it, so that pieces put side
by side give the text back with its spacing. Words and punctuation marks are never joined into
one piece.
"""

import itertools
import json
import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tokenizers as library
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from regard.core.config import at_least
from regard.core.errors import CheckpointError, DataError
from regard.core.files import write_text
from regard.core.tables import pick
from regard.data.phrasebook import split_words

SPECIAL_TOKENS = ["<pad>", "<unk>", "<sos>", "<eos>"]
UNKNOWN_SIGN = "⁇"
"""What a reader sees in place of a token that stands for something unknown."""

MAX_WORD_LENGTH = 1000
"""Characters after which a word is broken while learning; merging inside it would take hours."""

# Letters of a dead script, and one more than the longest piece, so that no piece holds them all.
_WORD_END = "".join(map(chr, range(0x10600, 0x10611)))
# What the unigram trainer puts between the scores of characters that it did not need.
_RANK_STEP = 0.0001

_WORD_OR_MARK = r"▁?(?:[\p{L}\p{M}\p{N}'’\-]+|[^\s▁])|▁"


@dataclass(frozen=True, kw_only=True)
class TokenizerConfig:
    """How text is cut into tokens."""

    kind: Literal["word", "char", "byte", "bpe", "unigram", "wordpiece"] = "bpe"
    """Whole words, characters, bytes, or pieces of words learned in one of three ways."""
    vocab_size: int = 8000
    """Number of tokens at most, the four special ones included; `byte` always has 260."""
    min_frequency: int = 1
    """How often a word, character or pair of pieces must occur to become a token; not used by
    `byte` and `unigram`."""
    is_lower_cased: bool = False
    """Whether upper case is given up."""

    def __post_init__(self) -> None:
        at_least("vocab_size", self.vocab_size, len(SPECIAL_TOKENS) + 1)
        at_least("min_frequency", self.min_frequency, 1)


class Tokenizer:
    """Turns text into token ids and back.

    Text is brought into Unicode form NFC, and every run of blanks becomes one blank (`byte` keeps
    them all). What looks like a special token in a text is text.
    """

    def __init__(self, trained: library.Tokenizer) -> None:
        self._trained = trained
        # Not saved by the library: without it, the text "<eos>" would end a sentence.
        self._trained.encode_special_tokens = True
        ids = trained.get_vocab(with_added_tokens=True)
        self._tokens = sorted(ids, key=lambda token: ids[token])
        self._is_bytes = isinstance(trained.decoder, decoders.ByteLevel)
        # These two give up whole words, and with the word goes the blank before it.
        gives_up_words = isinstance(trained.model, models.WordLevel | models.WordPiece)
        self._unknown_sign = "▁" + UNKNOWN_SIGN if gives_up_words else UNKNOWN_SIGN

    @property
    def pad(self) -> int:
        """Fills a batch up."""
        return 0

    @property
    def unk(self) -> int:
        """Stands for what the vocabulary does not hold."""
        return 1

    @property
    def sos(self) -> int:
        """Starts a sentence."""
        return 2

    @property
    def eos(self) -> int:
        """Ends a sentence."""
        return 3

    @property
    def vocab_size(self) -> int:
        """Number of token ids, special ones included."""
        return len(self._tokens)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without start and end."""
        return self._trained.encode(text, add_special_tokens=False).ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of many texts, much faster than one by one."""
        encodings = self._trained.encode_batch_fast(list(texts), add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids; special tokens are left out, an unknown token shows as `⁇`."""
        hidden = (self.pad, self.sos, self.eos)
        pieces = [
            self._unknown_sign if index == self.unk else self._tokens[index]
            for index in ids
            if index not in hidden
        ]
        assert self._trained.decoder is not None
        return str(self._trained.decoder.decode(pieces))

    def tokens(self, text: str) -> list[str]:
        """Return the pieces of a text as a person can read them."""
        return [self.token(index) for index in self.encode(text)]

    def token(self, index: int) -> str:
        """Return one token as a person can read it; a byte beyond ASCII shows as `<C3>`."""
        if not self._is_bytes or index < len(SPECIAL_TOKENS):
            return self._tokens[index]
        byte = index - len(SPECIAL_TOKENS)
        if chr(byte) == " ":
            return "▁"
        return chr(byte) if chr(byte).isascii() and chr(byte).isprintable() else f"<{byte:02X}>"

    def word_index(self, text: str) -> list[int]:
        """Return for each piece of a text the word it belongs to, counted from 0.

        Words are those of `split_words`, taken from the text in Unicode form NFC. A piece of
        nothing but blanks belongs to the word that follows.
        """
        text = unicodedata.normalize("NFC", text)
        ends = _word_ends(text)
        offsets = self._trained.encode(text, add_special_tokens=False).offsets
        return [_find_word(ends, text, span) for span in offsets]

    def save(self, path: Path) -> None:
        """Write the tokenizer as one file in the library's own JSON format."""
        write_text(path, self._trained.to_str(pretty=True) + "\n")

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """Read what `save` wrote."""
        try:
            trained = library.Tokenizer.from_str(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise CheckpointError(f"{path} is missing. Is {path.parent} a run folder?") from None
        except Exception as error:  # The library raises nothing more precise.
            raise CheckpointError(f"{path} is not a tokenizer: {error}. It is damaged.") from None
        if [trained.id_to_token(index) for index in range(4)] != SPECIAL_TOKENS:
            raise CheckpointError(
                f"{path} must begin with the tokens {', '.join(SPECIAL_TOKENS)}. "
                "It was not written by this package."
            )
        return cls(trained)


def train_tokenizer(config: TokenizerConfig, texts: Iterable[str]) -> Tokenizer:
    """Learn a tokenizer; the same texts always give the same one."""
    build = pick(TOKENIZERS, config.kind, "kind")
    normalizer = _normalizer(config)
    lines = [_break_long_words(normalizer.normalize_str(text)) for text in texts]
    if not any(lines):
        raise DataError("A tokenizer needs text to learn from, but all texts are empty.")
    trained = build(config, lines)
    trained.normalizer = normalizer
    return Tokenizer(trained)


def _normalizer(config: TokenizerConfig) -> normalizers.Normalizer:
    steps: list[normalizers.Normalizer] = [normalizers.NFC()]
    if config.is_lower_cased:
        steps.append(normalizers.Lowercase())
    if config.kind != "byte":
        steps += [normalizers.Replace(library.Regex(r"\s+"), " "), normalizers.Strip()]
    return normalizers.Sequence(steps)


def _break_long_words(text: str) -> str:
    if len(text) <= MAX_WORD_LENGTH:
        return text
    return re.sub(rf"(\S{{{MAX_WORD_LENGTH}}})", r"\1 ", text)


def _build_words(config: TokenizerConfig, texts: list[str]) -> library.Tokenizer:
    trainer = trainers.WordLevelTrainer(
        vocab_size=config.vocab_size,
        min_frequency=config.min_frequency,
        special_tokens=SPECIAL_TOKENS,
        show_progress=False,
    )
    return _train(models.WordLevel(unk_token="<unk>"), trainer, texts)


def _build_characters(config: TokenizerConfig, texts: list[str]) -> library.Tokenizer:
    counts = _count_characters(texts)
    frequent = [c for c, count in counts.items() if count >= config.min_frequency]
    characters = frequent[: config.vocab_size - len(SPECIAL_TOKENS)]
    return _without_merges(characters, pre_tokenizers.Metaspace(), decoders.Metaspace())


def _build_bytes(config: TokenizerConfig, texts: list[str]) -> library.Tokenizer:
    # The library spells each byte by a printable character: a Latin-1 byte that is printable by
    # itself, the others, in their order, by what comes after Latin-1.
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    others = (character for character in alphabet if ord(character) > 255)
    spelling = [chr(b) if chr(b) in alphabet else next(others) for b in range(256)]
    cutter = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return _without_merges(spelling, cutter, decoders.ByteLevel())


def _build_bpe(config: TokenizerConfig, texts: list[str]) -> library.Tokenizer:
    trainer = trainers.BpeTrainer(
        vocab_size=config.vocab_size,
        min_frequency=config.min_frequency,
        special_tokens=SPECIAL_TOKENS,
        show_progress=False,
    )
    model = models.BPE(unk_token="<unk>")
    return _train(model, trainer, _without_rare_characters(config, texts))


def _build_unigram(config: TokenizerConfig, texts: list[str]) -> library.Tokenizer:
    trainer = trainers.UnigramTrainer(
        vocab_size=config.vocab_size + len(_WORD_END),
        special_tokens=SPECIAL_TOKENS,
        unk_token="<unk>",
        show_progress=False,
    )
    texts = _without_rare_characters(config, texts)
    trained = _train(models.Unigram(), trainer, texts + _end_words(texts, config.vocab_size))
    trained.model = _settle(trained, config.vocab_size)
    return trained


def _build_wordpiece(config: TokenizerConfig, texts: list[str]) -> library.Tokenizer:
    # No "##": the mark for blanks already tells where a word begins.
    trainer = trainers.WordPieceTrainer(
        vocab_size=config.vocab_size,
        min_frequency=config.min_frequency,
        special_tokens=SPECIAL_TOKENS,
        continuing_subword_prefix="",
        show_progress=False,
    )
    model = models.WordPiece(unk_token="<unk>", continuing_subword_prefix="")
    return _train(model, trainer, _without_rare_characters(config, texts))


def _train(model: models.Model, trainer: trainers.Trainer, texts: list[str]) -> library.Tokenizer:
    trained = library.Tokenizer(model)
    trained.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Metaspace(),
            pre_tokenizers.Split(library.Regex(_WORD_OR_MARK), "isolated"),
        ]
    )
    trained.decoder = decoders.Metaspace()
    trained.train_from_iterator(texts, trainer)
    return trained


def _without_merges(
    alphabet: list[str], cutter: pre_tokenizers.PreTokenizer, decoder: decoders.Decoder
) -> library.Tokenizer:
    vocabulary = {token: index for index, token in enumerate(SPECIAL_TOKENS + alphabet)}
    trained = library.Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>"))
    trained.add_special_tokens(SPECIAL_TOKENS)
    trained.pre_tokenizer = cutter
    trained.decoder = decoder
    return trained


def _count_characters(texts: list[str]) -> dict[str, int]:
    """Count characters as the pieces hold them, the most frequent first."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update("▁" + text.replace(" ", "▁") if text else "")
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _without_rare_characters(config: TokenizerConfig, texts: list[str]) -> list[str]:
    """Blank out what does not fit, since the trainers take every character they meet."""
    characters = itertools.islice(
        _count_characters(texts), config.vocab_size - len(SPECIAL_TOKENS), None
    )
    table = {ord(character): " " for character in characters}
    return [text.translate(table) for text in texts] if table else texts


def _end_words(texts: list[str], num: int) -> list[str]:
    """Write each of the most frequent words once more, with `_WORD_END` at its end.

    The unigram trainer takes into account only pieces that different letters follow somewhere;
    without this, it would never learn a whole word.
    """
    counts = Counter(word for text in texts for word in split_words(text))
    return [word + _WORD_END for word, _ in counts.most_common(num)]


def _settle(trained: library.Tokenizer, vocab_size: int) -> models.Unigram:
    """Take chance, word ends and surplus out of a unigram model.

    Its trainer adds numbers up in an order that differs from run to run, gives the characters
    that it did not need a random rank at the lower end, and may exceed its limit by them.
    """
    pieces = json.loads(trained.to_str())["model"]["vocab"][len(SPECIAL_TOKENS) :]
    least = min(score for _, score in pieces)
    margin = least + len(pieces) * _RANK_STEP
    settled = [
        (piece, round(least if len(piece) == 1 and score <= margin else score, 6))
        for piece, score in pieces
        if piece not in _WORD_END
    ]
    # Single characters first: whatever else must go, they can spell every word.
    settled.sort(key=lambda item: (len(item[0]) > 1, -item[1], item[0]))
    special = [(token, 0.0) for token in SPECIAL_TOKENS]
    return models.Unigram((special + settled)[:vocab_size], unk_id=1, byte_fallback=False)


def _word_ends(text: str) -> list[int]:
    ends: list[int] = []
    for word in split_words(text):
        ends.append(text.index(word, ends[-1] if ends else 0) + len(word))
    return ends


def _find_word(ends: list[int], text: str, span: tuple[int, int]) -> int:
    start, end = span
    while start < end and text[start].isspace():
        start += 1
    return max(min(bisect_right(ends, start), len(ends) - 1), 0)


TOKENIZERS: dict[str, Callable[[TokenizerConfig, list[str]], library.Tokenizer]] = {
    "word": _build_words,
    "char": _build_characters,
    "byte": _build_bytes,
    "bpe": _build_bpe,
    "unigram": _build_unigram,
    "wordpiece": _build_wordpiece,
}
