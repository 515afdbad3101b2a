"""Deterministic training of tokenizers on texts."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import tokenizers as library
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from regard.core.errors import DataError
from regard.core.progress import show_message
from regard.core.tables import pick
from regard.data.text.tokenizers import SPECIAL_TOKENS, Tokenizer, TokenizerConfig, split_words

MAX_WORD_LENGTH = 1000
"""Characters after which a word is split in training; merges inside longer words take hours."""

# Letters of an unused script, one more than the longest token has, so that no token holds them all.
_WORD_END = "".join(map(chr, range(0x10600, 0x10611)))
# Difference that the unigram trainer puts between the scores of characters it did not need.
_RANK_STEP = 0.0001

_WORD_OR_MARK = r"▁?(?:[\p{L}\p{M}\p{N}'’\-]+|[^\s▁])|▁"


def train_tokenizer(config: TokenizerConfig, texts: Iterable[str]) -> Tokenizer:
    """Train a tokenizer; the same texts always give the same tokenizer."""
    build = pick(TOKENIZERS, config.kind, "kind")
    normalizer = _normalizer(config)
    lines = [_split_long_words(normalizer.normalize_str(text)) for text in texts]
    if not any(lines):
        raise DataError("A tokenizer needs text to learn from, but all texts are empty.")
    with show_message(f"Fitting the tokenizer to {len(lines):,} texts"):
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


def _split_long_words(text: str) -> str:
    if len(text) <= MAX_WORD_LENGTH:
        return text
    return re.sub(rf"(\S{{{MAX_WORD_LENGTH}}})", r"\1 ", text)


def _special(config: TokenizerConfig) -> list[str]:
    return [*SPECIAL_TOKENS, *config.extra_tokens]


def _limits(config: TokenizerConfig) -> dict[str, Any]:
    """Return the arguments of all trainers that count."""
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
    splitter, decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    return _without_merges([*_special(config), *characters], splitter, decoder)


def _build_bytes(config: TokenizerConfig, texts: list[str]) -> library.Tokenizer:
    # The library maps each byte to a printable character: printable Latin-1 bytes to themselves,
    # the others, in order, to characters after Latin-1.
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    others = (character for character in alphabet if ord(character) > 255)
    spelling = [chr(b) if chr(b) in alphabet else next(others) for b in range(256)]
    splitter = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    # Extra tokens come last, so that the ids of bytes do not depend on them.
    tokens = [*SPECIAL_TOKENS, *spelling, *config.extra_tokens]
    return _without_merges(tokens, splitter, decoders.ByteLevel())


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
    trained.model = _make_deterministic(trained, config)
    return trained


def _build_wordpiece(config: TokenizerConfig, texts: list[str]) -> library.Tokenizer:
    # No "##": "▁" already marks the start of a word.
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
    """Train a model on words; with `has_marks`, punctuation marks are separate words."""
    trained = library.Tokenizer(model)
    splitter = trained.pre_tokenizer = pre_tokenizers.Metaspace()
    if has_marks:
        marks = pre_tokenizers.Split(library.Regex(_WORD_OR_MARK), "isolated")
        trained.pre_tokenizer = pre_tokenizers.Sequence([splitter, marks])
    trained.decoder = decoders.Metaspace()
    trained.train_from_iterator(texts, trainer)
    return trained


def _without_merges(
    tokens: list[str], splitter: pre_tokenizers.PreTokenizer, decoder: decoders.Decoder
) -> library.Tokenizer:
    vocabulary = {token: index for index, token in enumerate(tokens)}
    trained = library.Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>"))
    trained.add_special_tokens(SPECIAL_TOKENS)
    trained.pre_tokenizer = splitter
    trained.decoder = decoder
    return trained


def _count_characters(texts: list[str]) -> dict[str, int]:
    """Count characters, with `▁` for spaces, the most frequent first."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update("▁" + text.replace(" ", "▁") if text else "")
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _without_rare_characters(config: TokenizerConfig, texts: list[str]) -> list[str]:
    """Replace characters beyond `vocab_size` by spaces; the trainers would keep all of them."""
    characters = [*_count_characters(texts)][config.vocab_size - len(_special(config)) :]
    table = str.maketrans(dict.fromkeys(characters, " "))
    return [text.translate(table) for text in texts] if table else texts


def _end_words(texts: list[str], num: int) -> list[str]:
    """Return each of the most frequent words once, followed by `_WORD_END`.

    The unigram trainer considers only substrings that are followed by different characters.
    Without these words, it would never learn a whole word.
    """
    counts = Counter(word for text in texts for word in split_words(text))
    return [word + _WORD_END for word, _ in counts.most_common(num)]


def _make_deterministic(trained: library.Tokenizer, config: TokenizerConfig) -> models.Unigram:
    """Return a unigram model without random differences, `_WORD_END` and surplus tokens.

    The trainer sums numbers in an order that differs from run to run, gives characters that it did
    not need low scores in random order, and may exceed `vocab_size` by these characters.
    """
    scores = json.loads(trained.to_str())["model"]["vocab"][len(_special(config)) :]
    lowest = min(score for _, score in scores)
    margin = lowest + len(scores) * _RANK_STEP
    tokens = [
        (token, round(lowest if len(token) == 1 and score <= margin else score, 6))
        for token, score in scores
        if token not in _WORD_END
    ]
    # Single characters first: when tokens are dropped, characters can still encode every word.
    tokens.sort(key=lambda item: (len(item[0]) > 1, -item[1], item[0]))
    special = [(token, 0.0) for token in _special(config)]
    return models.Unigram((special + tokens)[: config.vocab_size], unk_id=1, byte_fallback=False)


TOKENIZERS: dict[str, Callable[[TokenizerConfig, list[str]], library.Tokenizer]] = {
    "word": _build_words,
    "whitespace": partial(_build_words, has_marks=False),
    "char": _build_characters,
    "byte": _build_bytes,
    "bpe": _build_bpe,
    "unigram": _build_unigram,
    "wordpiece": _build_wordpiece,
}
