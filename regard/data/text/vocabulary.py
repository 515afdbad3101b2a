"""Learning a tokenizer from texts; the same texts always give the same one."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import tokenizers as library
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from regard.core.errors import DataError
from regard.core.tables import pick
from regard.data.text.tokenizers import SPECIAL_TOKENS, Tokenizer, TokenizerConfig, split_words

MAX_WORD_LENGTH = 1000
"""Characters after which a word is broken while learning; merging inside it would take hours."""

# Letters of a dead script, and one more than the longest piece, so that no piece holds them all.
_WORD_END = "".join(map(chr, range(0x10600, 0x10611)))
# What the unigram trainer puts between the scores of characters that it did not need.
_RANK_STEP = 0.0001

_WORD_OR_MARK = r"▁?(?:[\p{L}\p{M}\p{N}'’\-]+|[^\s▁])|▁"


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


def _special(config: TokenizerConfig) -> list[str]:
    return [*SPECIAL_TOKENS, *config.extra_tokens]


def _limits(config: TokenizerConfig) -> dict[str, Any]:
    """Return what every trainer that counts is told."""
    return {
        "vocab_size": config.vocab_size,
        "min_frequency": config.min_frequency,
        "special_tokens": _special(config),
        "show_progress": False,
    }


def _build_words(
    config: TokenizerConfig, texts: list[str], *, has_marks: bool = True
) -> library.Tokenizer:
    trainer = trainers.WordLevelTrainer(**_limits(config))
    return _train(models.WordLevel(unk_token="<unk>"), trainer, texts, has_marks=has_marks)


def _build_characters(config: TokenizerConfig, texts: list[str]) -> library.Tokenizer:
    counts = _count_characters(texts)
    frequent = [c for c, count in counts.items() if count >= config.min_frequency]
    characters = frequent[: config.vocab_size - len(_special(config))]
    cutter, decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    return _without_merges([*_special(config), *characters], cutter, decoder)


def _build_bytes(config: TokenizerConfig, texts: list[str]) -> library.Tokenizer:
    # The library spells each byte by a printable character: a Latin-1 byte that is printable by
    # itself, the others, in their order, by what comes after Latin-1.
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    others = (character for character in alphabet if ord(character) > 255)
    spelling = [chr(b) if chr(b) in alphabet else next(others) for b in range(256)]
    cutter = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    # Extra tokens come last, so that a byte's id does not hang on them.
    tokens = [*SPECIAL_TOKENS, *spelling, *config.extra_tokens]
    return _without_merges(tokens, cutter, decoders.ByteLevel())


def _build_bpe(config: TokenizerConfig, texts: list[str]) -> library.Tokenizer:
    trainer = trainers.BpeTrainer(**_limits(config))
    model = models.BPE(unk_token="<unk>")
    return _train(model, trainer, _without_rare_characters(config, texts))


def _build_unigram(config: TokenizerConfig, texts: list[str]) -> library.Tokenizer:
    trainer = trainers.UnigramTrainer(
        vocab_size=config.vocab_size + len(_WORD_END),
        special_tokens=_special(config),
        unk_token="<unk>",
        show_progress=False,
    )
    texts = _without_rare_characters(config, texts)
    trained = _train(models.Unigram(), trainer, texts + _end_words(texts, config.vocab_size))
    trained.model = _settle(trained, config)
    return trained


def _build_wordpiece(config: TokenizerConfig, texts: list[str]) -> library.Tokenizer:
    # No "##": the mark for spaces already shows where a word begins.
    trainer = trainers.WordPieceTrainer(**_limits(config), continuing_subword_prefix="")
    model = models.WordPiece(unk_token="<unk>", continuing_subword_prefix="")
    return _train(model, trainer, _without_rare_characters(config, texts))


def _train(
    model: models.Model,
    trainer: trainers.Trainer,
    texts: list[str],
    *,
    has_marks: bool = True,
) -> library.Tokenizer:
    """Train a model on words; with marks, punctuation is cut from words."""
    trained = library.Tokenizer(model)
    cutter = trained.pre_tokenizer = pre_tokenizers.Metaspace()
    if has_marks:
        marks = pre_tokenizers.Split(library.Regex(_WORD_OR_MARK), "isolated")
        trained.pre_tokenizer = pre_tokenizers.Sequence([cutter, marks])
    trained.decoder = decoders.Metaspace()
    trained.train_from_iterator(texts, trainer)
    return trained


def _without_merges(
    tokens: list[str], cutter: pre_tokenizers.PreTokenizer, decoder: decoders.Decoder
) -> library.Tokenizer:
    vocabulary = {token: index for index, token in enumerate(tokens)}
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
    characters = [*_count_characters(texts)][config.vocab_size - len(_special(config)) :]
    table = str.maketrans(dict.fromkeys(characters, " "))
    return [text.translate(table) for text in texts] if table else texts


def _end_words(texts: list[str], num: int) -> list[str]:
    """Write each of the most frequent words once more, with `_WORD_END` at its end.

    The unigram trainer takes into account only pieces that different letters follow somewhere;
    without this, it would never learn a whole word.
    """
    counts = Counter(word for text in texts for word in split_words(text))
    return [word + _WORD_END for word, _ in counts.most_common(num)]


def _settle(trained: library.Tokenizer, config: TokenizerConfig) -> models.Unigram:
    """Take chance, word ends and surplus out of a unigram model.

    Its trainer adds numbers up in an order that differs from run to run, gives the characters
    that it did not need a random rank at the lower end, and may exceed its limit by them.
    """
    pieces = json.loads(trained.to_str())["model"]["vocab"][len(_special(config)) :]
    least = min(score for _, score in pieces)
    margin = least + len(pieces) * _RANK_STEP
    settled = [
        (piece, round(least if len(piece) == 1 and score <= margin else score, 6))
        for piece, score in pieces
        if piece not in _WORD_END
    ]
    # Single characters first: whatever else must go, they can spell every word.
    settled.sort(key=lambda item: (len(item[0]) > 1, -item[1], item[0]))
    special = [(token, 0.0) for token in _special(config)]
    return models.Unigram((special + settled)[: config.vocab_size], unk_id=1, byte_fallback=False)


TOKENIZERS: dict[str, Callable[[TokenizerConfig, list[str]], library.Tokenizer]] = {
    "word": _build_words,
    "whitespace": partial(_build_words, has_marks=False),
    "char": _build_characters,
    "byte": _build_bytes,
    "bpe": _build_bpe,
    "unigram": _build_unigram,
    "wordpiece": _build_wordpiece,
}
