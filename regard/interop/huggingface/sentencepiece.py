"""SentencePiece models: the pieces and scores of a .spm file, as a tokenizer of ours.

The file is a protocol buffer of which four numbers and two lists matter, so it is read here.
"""

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

UNIGRAM = 1
NORMAL, USER_DEFINED, BYTE = 1, 4, 6

SPECIAL = ("</s>", "<unk>", "<pad>", "<s>")
"""Tokens that no text is cut into, even one that spells them."""

UNKNOWN_PENALTY = 10.0
"""How much less likely than the least likely piece an unknown letter is."""

UNKNOWN_RUN = "\ufffe"
"""Stands for several unknown letters while a text is cut; it is no letter of any script."""

UNREACHABLE = " "
"""Begins the spelling of a token that the model has no piece for: no text holds a plain blank by
the time it is cut, so it is never found, but it can be written."""


@dataclass
class PieceModel:
    """What a .spm file says."""

    pieces: dict[str, float] = field(default_factory=dict)
    """The log-probability of each piece that texts are cut into."""
    charsmap: bytes = b""
    """How characters are normalised, in the library's own format."""
    kind: int = UNIGRAM
    """How the pieces were learned."""
    has_bytes: bool = False
    """Whether unknown characters are spelled in bytes."""

    @cached_property
    def least(self) -> float:
        """The log-probability of the least likely piece."""
        return min(self.pieces.values())


def read_pieces(path: Path) -> PieceModel:
    """Read a .spm file."""
    found = PieceModel()
    try:
        for number, value in _fields(path.read_bytes()):
            if number == 1:
                _read_piece(value, found)
            elif number == 2:
                found.kind = next((v for n, v in _fields(value) if n == 3), UNIGRAM)
            elif number == 3:
                found.charsmap = next((v for n, v in _fields(value) if n == 2), b"")
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing.") from None
    except (LookupError, ValueError, TypeError, struct.error):
        raise CheckpointError(f"{path} is not a SentencePiece model, or is damaged.") from None
    if not found.pieces or found.kind != UNIGRAM or found.has_bytes:
        raise CheckpointError(
            f"{path} must be a unigram model without byte pieces; others are not read."
        )
    return found


def _read_piece(message: bytes, found: PieceModel) -> None:
    piece, score, kind = "", 0.0, NORMAL
    for number, value in _fields(message):
        if number == 1:
            piece = value.decode("utf-8")
        elif number == 2:
            (score,) = struct.unpack("<f", value)
        elif number == 3:
            kind = value
    found.has_bytes |= kind == BYTE
    if kind in (NORMAL, USER_DEFINED):
        found.pieces[piece] = score


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the number and the value of each field of a protocol buffer."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        kind = key & 7
        if kind == 0:
            value, place = _varint(message, place)
            yield key >> 3, value
            continue
        if kind == 2:
            size, place = _varint(message, place)
        else:
            size = {1: 8, 5: 4}[kind]
        if place + size > len(message):
            raise ValueError("cut short")
        yield key >> 3, message[place : place + size]
        place += size


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place


def build_unigram(found: PieceModel, ids: Mapping[str, int]) -> tuple[library.Tokenizer, int]:
    """Build a tokenizer with the pieces of a model under the ids of a vocabulary.

    A vocabulary of two languages holds pieces of which each side's model knows only some.

    Args:
        found: The pieces of one side.
        ids: The id of every token, 0, 1, … without a gap.

    Returns:
        The tokenizer, and how many pieces the vocabulary lacks: they are spelled by smaller ones.
    """
    codes = [token for token in ids if token.startswith(">>") and token.endswith("<<")]
    kept = {*SPECIAL, *codes}
    entries = [
        (token, 0.0) if token in kept else _entry(token, found)
        for token in sorted(ids, key=lambda token: ids[token])
    ]
    model = models.Unigram(entries, unk_id=ids["<unk>"], byte_fallback=False)
    trained = library.Tokenizer(model)
    trained.normalizer = _normalizer(found)
    special = [token for token in SPECIAL if token in ids]
    tails = "|".join(token[1:] for token in special)
    trained.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Metaspace(split=False),
            # Without this, a text that spells a special token would be cut into it.
            pre_tokenizers.Split(library.Regex(f"<(?={tails})"), "isolated"),
        ]
    )
    trained.decoder = decoders.Sequence([decoders.Replace(UNREACHABLE, ""), decoders.Metaspace()])
    trained.add_special_tokens(special)
    # The language to translate into, before a text; unlike special tokens, texts may spell it.
    trained.add_tokens([library.AddedToken(code, normalized=False) for code in codes])
    return trained, sum(piece not in ids for piece in found.pieces)


def _entry(token: str, found: PieceModel) -> tuple[str, float]:
    """Return how a token is found in texts, and what it costs."""
    if token in found.pieces:
        return token, found.pieces[token]
    if len(token) == 1:
        # A letter that the model does not know may still have an id, by the other side.
        return token, found.least - UNKNOWN_PENALTY
    return UNREACHABLE + token, 0.0


def _normalizer(found: PieceModel) -> normalizers.Normalizer:
    known = "".join(re.escape(piece) for piece in found.pieces if len(piece) == 1)
    steps: list[normalizers.Normalizer] = [
        normalizers.Replace(library.Regex(" {2,}"), " "),
        normalizers.Strip(),
        # Unknown letters side by side are one unknown piece, whatever ids they have one by one.
        normalizers.Replace(library.Regex(f"[^ {known}]{{2,}}"), UNKNOWN_RUN),
    ]
    if found.charsmap:
        steps.insert(0, normalizers.Precompiled(found.charsmap))
    return normalizers.Sequence(steps)
