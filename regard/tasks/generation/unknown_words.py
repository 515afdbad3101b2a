"""Replacement of unknown tokens in predictions by source words, through attention weights."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from regard.core.errors import ConfigError
from regard.data.example import Example
from regard.data.text.field import Text, TextField, texts_of
from regard.data.text.tokenizers import UNKNOWN_SIGN, Tokenizer, split_words
from regard.tasks.generation.attention import attend, attend_batches
from regard.tasks.generation.term_matching import Glossary
from regard.tasks.prediction import Prediction

if TYPE_CHECKING:
    from regard.tasks.generation.task import Predictor

SAMPLE = "a b c d e f"


def check_attention(task: "Predictor") -> None:
    """Raise `ConfigError` if a model has no attention weights over single source tokens."""
    (found,) = attend(task, [Example(SAMPLE, SAMPLE)])
    if not found.weights.shape[0]:
        raise ConfigError(
            "`replace_unknown` needs attention weights, but this model has none. Leave it out."
        )
    num = len(_source_text(task).read(SAMPLE))
    if len(found.source) != num:
        raise ConfigError(
            "`replace_unknown` needs attention weights of every source token, but the encoder of "
            f"this model has {len(found.source)} positions for {num} tokens. Leave it out."
        )


def replace_unknown(
    task: "Predictor",
    sources: Sequence[Text],
    predictions: Sequence[list[Prediction]],
    *,
    glossary: Glossary | None = None,
) -> list[list[Prediction]]:
    """Replace each unknown token by the source word with the largest attention weight.

    Weights are averaged over layers and heads (Luong et al. 2015b, Jean et al. 2015). If the word
    is a term of the glossary, its translation is used.

    Args:
        task: The run.
        sources: The sources.
        predictions: The predictions of each source.
        glossary: Translations.
    """
    tokenizer = task.target.tokenizer
    unknown = tokenizer.token(tokenizer.unk)
    pairs = [
        (source, one)
        for source, group in zip(sources, predictions, strict=True)
        for one in group
        if unknown in one.tokens
    ]
    if not pairs:
        return list(predictions)
    ids = {token: index for index, token in enumerate(tokenizer.tokens_in_order())}
    targets = [[tokenizer.sos, *(ids[token] for token in one.tokens)] for _, one in pairs]
    items = task.limit_sources(task.source.read_all([source for source, _ in pairs]))
    batches = task.pair_batches(items, targets, is_shuffled=False)
    source_tokenizer = _source_text(task).tokenizer
    texts = {}
    for (source, one), found in zip(
        pairs, attend_batches(task, list(batches.epoch(0))), strict=True
    ):
        positions = [index for index, token in enumerate(one.tokens) if token == unknown]
        words = _attended_words(source, found.mean()[positions], source_tokenizer)
        if glossary is not None:
            words = [glossary.translate(word) or word for word in words]
        texts[id(one)] = _fill(one.text, words)
    return [
        [replace(one, text=texts.get(id(one), one.text)) for one in group] for group in predictions
    ]


def _source_text(task: "Predictor") -> TextField:
    assert task.source.text is not None  # Checked with the options.
    return task.source.text


def _attended_words(source: Text, weights: Tensor, tokenizer: Tokenizer) -> list[str]:
    """Return the source word with the largest weight of each row of weights (T, S)."""
    words: list[str] = []
    columns: list[int] = []
    for part in texts_of(source):
        # The end token of a text is no word.
        columns += [*(len(words) + index for index in tokenizer.word_index(part)), -1]
        words += split_words(part)
    index = torch.tensor(columns[: weights.shape[1]])
    sums = torch.zeros(len(weights), len(words)).index_add_(
        1, index.clamp(min=0), weights * (index >= 0)
    )
    return [words[best] for best in sums.argmax(1).tolist()]


def _fill(text: str, words: Sequence[str]) -> str:
    """Replace the signs of unknown tokens in a text, in order."""
    parts = text.split(UNKNOWN_SIGN)
    if len(parts) != len(words) + 1:
        # The text of a source may contain the sign itself.
        return text
    return "".join(part + word for part, word in zip(parts, [*words, ""], strict=True))
