"""SentencePiece unigram models (.spm files), converted to tokenizers.

The file is a protocol buffer. Only a few of its fields are needed, so it is parsed here.
"""

import math
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import tokenizers as library
from tokenizers import decoders, models, normalizers, pre_tokenizers

from regard.core.errors import CheckpointError
from regard.core.records import read_bytes

UNIGRAM = 1
NORMAL, USER_DEFINED, BYTE = 1, 4, 6

MAX_BITS = 64
"""Maximum number of bits of an integer in the file."""

SPECIAL = ("</s>", "<unk>", "<pad>", "<s>")
"""Special tokens; no text is encoded as one of them, even if it contains the spelling."""

UNKNOWN_PENALTY = 10.0
"""Difference in log-probability between the least likely token and an unknown character."""

UNKNOWN_RUN = "\ufffe"
"""Replacement of several consecutive unknown characters; not a character of any script."""

UNREACHABLE = " "
"""Prefix of tokens that are not in the model. Normalised text has no plain spaces, so these tokens
are never produced by encoding, but they can be decoded."""


@dataclass
class SentencePieceModel:
    """Content of a .spm file."""

    scores: dict[str, float] = field(default_factory=dict)
    """Log-probability of each token."""
    charsmap: bytes = b""
    """Normalisation of characters, in the library's format."""
    kind: int = UNIGRAM
    """Kind of the model."""
    has_bytes: bool = False
    """Whether unknown characters are encoded as bytes."""

    @cached_property
    def min_score(self) -> float:
        """Log-probability of the least likely token."""
        return min(self.scores.values())


def read_sentencepiece(path: Path) -> SentencePieceModel:
    """Read a .spm file."""
    model = SentencePieceModel()
    try:
        for number, value in _fields(read_bytes(path)):
            if number == 1:
                _read_token(value, model)
            elif number == 2:
                model.kind = next((v for n, v in _fields(value) if n == 3), UNIGRAM)
            elif number == 3:
                model.charsmap = next((v for n, v in _fields(value) if n == 2), b"")
    except (AttributeError, LookupError, ValueError, TypeError, struct.error):
        raise CheckpointError(f"{path} is not a SentencePiece model, or is damaged.") from None
    if not model.scores or model.kind != UNIGRAM or model.has_bytes:
        raise CheckpointError(
            f"{path} must be a unigram model without byte tokens; others are not supported."
        )
    return model


def _read_token(message: bytes, model: SentencePieceModel) -> None:
    token, score, kind = "", 0.0, NORMAL
    for number, value in _fields(message):
        if number == 1:
            token = value.decode("utf-8")
        elif number == 2:
            (score,) = struct.unpack("<f", value)
            if not math.isfinite(score):
                raise ValueError("not a log-probability")
        elif number == 3:
            kind = value
    model.has_bytes |= kind == BYTE
    if kind in (NORMAL, USER_DEFINED):
        model.scores[token] = score


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the number and the value of each field of a protocol buffer."""
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        kind = key & 7
        if kind == 0:
            value, position = _varint(message, position)
            yield key >> 3, value
            continue
        if kind == 2:
            size, position = _varint(message, position)
        else:
            size = {1: 8, 5: 4}[kind]
        if position + size > len(message):
            raise ValueError("cut short")
        yield key >> 3, message[position : position + size]
        position += size


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        value |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return value, position
        if shift > MAX_BITS:
            raise ValueError("too long")


def build_unigram(
    source: SentencePieceModel, ids: Mapping[str, int]
) -> tuple[library.Tokenizer, int]:
    """Build a tokenizer with the tokens of a model and the ids of a vocabulary.

    The model of one language has only some tokens of a vocabulary of two languages.

    Args:
        source: Model of one language.
        ids: Ids of all tokens, consecutive from 0.

    Returns:
        The tokenizer, and the number of tokens of the model that the vocabulary lacks; they are
        split into smaller tokens.
    """
    codes = [token for token in ids if token.startswith(">>") and token.endswith("<<")]
    kept = {*SPECIAL, *codes}
    entries = [
        (token, 0.0) if token in kept else _entry(token, source)
        for token in sorted(ids, key=lambda token: ids[token])
    ]
    model = models.Unigram(entries, unk_id=ids["<unk>"], byte_fallback=False)
    trained = library.Tokenizer(model)
    trained.normalizer = _normalizer(source)
    special = [token for token in SPECIAL if token in ids]
    tails = "|".join(token[1:] for token in special)
    trained.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Metaspace(split=False),
            # Without this, the spelling of a special token in a text would be encoded as it.
            pre_tokenizers.Split(library.Regex(f"<(?={tails})"), "isolated"),
        ]
    )
    trained.decoder = decoders.Sequence([decoders.Replace(UNREACHABLE, ""), decoders.Metaspace()])
    trained.add_special_tokens(special)
    # Codes of the target language; unlike special tokens, texts may contain them.
    trained.add_tokens([library.AddedToken(code, normalized=False) for code in codes])
    return trained, sum(token not in ids for token in source.scores)


def _entry(token: str, model: SentencePieceModel) -> tuple[str, float]:
    """Return the spelling of a token in texts, and its log-probability."""
    if token in model.scores:
        return token, model.scores[token]
    if len(token) == 1:
        # A character that is not in the model may have an id from the other language.
        return token, model.min_score - UNKNOWN_PENALTY
    return UNREACHABLE + token, 0.0


def _normalizer(model: SentencePieceModel) -> normalizers.Normalizer:
    known = "".join(re.escape(token) for token in model.scores if len(token) == 1)
    steps: list[normalizers.Normalizer] = [
        normalizers.Replace(library.Regex(" {2,}"), " "),
        normalizers.Strip(),
        # Consecutive unknown characters are one unknown token, even if they have ids.
        normalizers.Replace(library.Regex(f"[^ {known}]{{2,}}"), UNKNOWN_RUN),
    ]
    if model.charsmap:
        steps.insert(0, normalizers.Precompiled(model.charsmap))
    return normalizers.Sequence(steps)
