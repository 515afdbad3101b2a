"""Tokenizers of words, characters, bytes or learned subwords, on the `tokenizers` library.

Every kind but `byte` marks a space by `▁` on the token after it, so that concatenated tokens
restore the text with its spacing. A token never spans a word and a punctuation mark.
"""

import hashlib
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import tokenizers as library
from tokenizers import decoders, models

from regard.core.config import Config, Positive, at_least
from regard.core.errors import CheckpointError, ConfigError, DataError
from regard.core.files import write_text
from regard.core.progress import track
from regard.core.tables import one_of
from regard.data.text.tokenizer_file import read_tokenizer

SPECIAL_TOKENS = ["<pad>", "<unk>", "<sos>", "<eos>"]
ROLES = {
    "pad": ("<pad>", "[PAD]"),
    "unk": ("<unk>", "[UNK]"),
    # Some models have no start token and start with padding.
    "sos": ("<sos>", "[CLS]", "<s>", "<pad>"),
    "eos": ("<eos>", "[SEP]", "</s>"),
}
"""Roles of special tokens, and their spellings here and in Hugging Face checkpoints."""

MASK = ("<mask>", "[MASK]")
"""Spellings of the mask token."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_WORD = re.compile(r"[\w'’-]+|[^\w\s]")
_WHITESPACE_WORD = re.compile(r"\S+")

CHUNK = 50_000
"""Number of texts to encode at once, between two updates of the progress."""

UNKNOWN_SIGN = "⁇"
"""Text of the unknown token in decoded text."""


TokenKind = Literal["word", "whitespace", "char", "byte", "bpe", "unigram", "wordpiece"]
"""Kinds of tokens."""


@dataclass(frozen=True, kw_only=True)
class TokenizerConfig(Config):
    """Settings of a tokenizer."""

    kind: TokenKind = "bpe"
    """Words and punctuation marks, words between whitespace, characters, bytes, or subwords learned
    by one of three algorithms."""
    vocab_size: int = 8000
    """Maximum number of tokens, with the four special tokens; `byte` always has 260."""
    min_frequency: Positive = 1
    """Minimum count of a word, character or pair of subwords to become a token; not used by `byte`
    and `unigram`."""
    is_lower_cased: bool = False
    """Whether text is lower-cased."""
    extra_tokens: tuple[str, ...] = ()
    """Further special tokens, such as '<mask>'; no text is encoded as one of them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("vocab_size", self.vocab_size, len(SPECIAL_TOKENS) + len(self.extra_tokens) + 1)


@contextmanager
def _whole_characters(texts: Sequence[str]) -> Iterator[None]:
    """Raise `DataError` if the library refuses texts for a lone surrogate in them."""
    try:
        yield
    except TypeError:
        if invalid := next(filter(_SURROGATE.search, texts), None):
            raise DataError(
                f"{invalid[:80]!r} is not valid Unicode: it holds half a character, or bytes that "
                "are not UTF-8. Convert it."
            ) from None
        raise


def split_words(text: str) -> list[str]:
    """Split a text into words and punctuation marks, the units of alignments."""
    return _WORD.findall(text)


def _split_at_spaces(text: str) -> list[str]:
    """Split a text at spaces; one that contains the mark of spaces itself is not split."""
    return [text] if "▁" in text else text.split(" ")


def split_at(ids: Iterable[int], end: int) -> list[list[int]]:
    """Split token ids at every end token, and drop the end tokens."""
    parts: list[list[int]] = [[]]
    for token in ids:
        if token == end:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def with_mask(config: TokenizerConfig) -> TokenizerConfig:
    """Return settings of a tokenizer with a mask token."""
    if any(spelling in config.extra_tokens for spelling in MASK):
        return config
    return replace(config, extra_tokens=(*config.extra_tokens, MASK[0]))


class Tokenizer:
    """Encoder of text as token ids, and decoder.

    Text is normalised to Unicode form NFC, and every run of whitespace becomes one space (`byte`
    keeps all whitespace). The spelling of a special token in a text is encoded as ordinary text.
    """

    pad: int
    """Id of the padding token."""
    unk: int
    """Id of the unknown token."""
    sos: int
    """Id of the start token."""
    eos: int
    """Id of the end token."""

    def __init__(self, trained: library.Tokenizer) -> None:
        self._trained = trained
        # Not saved by the library: without it, the text "<eos>" would end a sentence.
        self._trained.encode_special_tokens = True
        ids = trained.get_vocab(with_added_tokens=True)
        self._tokens = sorted(ids, key=lambda token: ids[token])
        self.pad, self.unk, self.sos, self.eos = (
            next(ids[spelling] for spelling in spellings if spelling in ids)
            for spellings in ROLES.values()
        )
        is_ours = self._tokens[: len(SPECIAL_TOKENS)] == SPECIAL_TOKENS
        self._is_bytes = is_ours and isinstance(trained.decoder, decoders.ByteLevel)
        # No token spans a space, so that words at spaces are encoded independently of each other.
        self._encodes_words = is_ours and not self._is_bytes
        # These two replace whole words by the unknown token, with the space before the word.
        drops_words = isinstance(trained.model, models.WordLevel | models.WordPiece)
        self._unknown_sign = "▁" + UNKNOWN_SIGN if is_ours and drops_words else UNKNOWN_SIGN

    def __reduce__(self) -> tuple[Any, ...]:
        # Not the attributes alone: the library does not keep `encode_special_tokens`.
        return Tokenizer, (self._trained,)

    @property
    def mask(self) -> int:
        """Id of the mask token."""
        for index in (self._trained.token_to_id(spelling) for spelling in MASK):
            if index is not None:
                return index
        raise ConfigError(
            "The vocabulary has no mask token. Give the tokenizer `extra_tokens` with '<mask>'."
        )

    def find(self, token: str) -> int:
        """Return the id of a special token by its spelling."""
        index = self._trained.token_to_id(token)
        if index is None:
            raise ConfigError(
                f"The vocabulary has no token '{token}'. Give the tokenizer `extra_tokens` with it."
            )
        return index

    @property
    def vocab_size(self) -> int:
        """Number of tokens, with special tokens."""
        return len(self._tokens)

    @property
    def is_byte_level(self) -> bool:
        """Whether every byte is a token, with the id of the byte plus 4."""
        return self._is_bytes

    def normalize(self, text: str) -> str:
        """Return a text in the form that is encoded: Unicode form NFC, and so on."""
        normalizer = self._trained.normalizer
        return normalizer.normalize_str(text) if normalizer is not None else text

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without start and end tokens."""
        with _whole_characters([text]):
            return self._trained.encode(text, add_special_tokens=False).ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of many texts, much faster than one by one."""
        if len(texts) == 1:
            # For a single one, the threads of the tokeniser take longer to wake than to encode.
            return [self.encode(texts[0])]
        encode = self._encode_by_words if self._encodes_words else self._encode_all
        chunks = [texts[start : start + CHUNK] for start in range(0, len(texts), CHUNK)]
        return [
            ids
            for chunk in track(chunks, "Tokenising", total=len(texts), size=len)
            for ids in encode(chunk)
        ]

    def _encode_all(self, texts: Iterable[str]) -> list[list[int]]:
        texts = list(texts)
        with _whole_characters(texts):
            encoded = self._trained.encode_batch_fast(texts, add_special_tokens=False)
        return [encoding.ids for encoding in encoded]

    def _encode_by_words(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode each distinct word once; a text has few words that no other text has."""
        rows = [_split_at_spaces(text) for text in texts]
        words = dict.fromkeys(chain.from_iterable(rows))
        known = dict(zip(words, self._encode_all(words), strict=True)).__getitem__
        return [[*chain.from_iterable(map(known, row))] for row in rows]

    @property
    def digest(self) -> str:
        """Checksum of the tokenizer; equal tokenizers encode every text as the same ids."""
        return hashlib.sha256(self._trained.to_str().encode()).hexdigest()

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids without special tokens; an unknown token becomes `⁇`."""
        skipped = (self.pad, self.sos, self.eos)
        tokens = [
            self._unknown_sign if index == self.unk else self._tokens[index]
            for index in ids
            if index not in skipped
        ]
        assert self._trained.decoder is not None
        return str(self._trained.decoder.decode(tokens))

    def token(self, index: int) -> str:
        """Return a printable form of one token; a byte beyond ASCII is `<C3>`."""
        byte = index - len(SPECIAL_TOKENS)
        if not self._is_bytes or not 0 <= byte < 256:
            return self._tokens[index]
        if chr(byte) == " ":
            return "▁"
        return chr(byte) if chr(byte).isascii() and chr(byte).isprintable() else f"<{byte:02X}>"

    def tokens(self, ids: Iterable[int]) -> tuple[str, ...]:
        """Return the tokens of ids in printable form."""
        return tuple(self.token(number) for number in ids)

    def word_index(self, text: str, *, at_whitespace: bool = False) -> list[int]:
        """Return the index of the word, from 0, that each token of a text belongs to.

        Words are those of `split_words`, taken from the text in Unicode form NFC. A token that is
        only whitespace belongs to the next word.

        Args:
            text: The text.
            at_whitespace: Whether words are separated by whitespace alone, as in Pharaoh files.
        """
        text = unicodedata.normalize("NFC", text)
        pattern = _WHITESPACE_WORD if at_whitespace else _WORD
        ends = [word.end() for word in pattern.finditer(text)]
        starts = [end - len(text[start:end].lstrip()) for start, end in self.spans(text)]
        return [max(min(bisect_right(ends, start), len(ends) - 1), 0) for start in starts]

    def tokens_in_order(self) -> list[str]:
        """Return the spellings of all tokens in the order of their ids."""
        return list(self._tokens)

    def word_starts(self) -> list[bool]:
        """Return for each token id whether it starts a word; a punctuation mark is a word."""
        if any(token.startswith("##") for token in self._tokens):
            return [not token.startswith("##") for token in self._tokens]
        return [token[:1] in "▁Ġ" or not token[:1].isalnum() for token in self._tokens]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the start and end of each token in a text in Unicode form NFC."""
        return list(self._trained.encode(text, add_special_tokens=False).offsets)

    def unknown(self, text: str) -> list[str]:
        """Return the parts of a text that are encoded as the unknown token."""
        text = unicodedata.normalize("NFC", text)
        return [
            text[start:end].strip()
            for (start, end), index in zip(self.spans(text), self.encode(text), strict=True)
            if index == self.unk
        ]

    def save(self, path: Path) -> None:
        """Write the tokenizer as one file in the library's own JSON format."""
        write_text(path, self._trained.to_str(pretty=True) + "\n")

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """Load a tokenizer that `save` wrote."""
        trained = read_tokenizer(path)
        for spellings in ROLES.values():
            if all(trained.token_to_id(spelling) is None for spelling in spellings):
                raise CheckpointError(
                    f"{path} must hold a token spelled {one_of(spellings)}, but has none."
                )
        return cls(trained)
