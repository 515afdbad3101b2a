"""Word alignments of a run's attention weights, and their error rates by layer and head."""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

from numpy.typing import NDArray

from regard.core.errors import ConfigError, DataError
from regard.core.tables import pick
from regard.data.example import Example
from regard.data.text.tokenizers import Tokenizer, split_words
from regard.metrics.result import Result
from regard.metrics.text.alignment import (
    Link,
    alignment_error_rate,
    links_from_weights,
    merge_to_words,
)
from regard.tasks.base import Task
from regard.tasks.generation.task import Predictor

CHUNK = 500
"""Number of pairs whose attention weights are in memory together."""

STEPS: dict[str, int] = {"output": 0, "input": 1}
"""Rows between a target token and its attention weights. The step that outputs a token has the
previous token as its input; the step after it has the token itself as its input."""


@dataclass(frozen=True)
class WordSplit:
    """Split of texts into the words that links count."""

    name: Literal["whitespace", "punctuation"]
    """`whitespace` as in Pharaoh files; `punctuation`: every mark is a word of its own, as in the
    alignments of the package."""

    def words(self, text: str) -> list[str]:
        """Split a text."""
        text = unicodedata.normalize("NFC", text)
        return text.split() if self.name == "whitespace" else split_words(text)

    def index(self, tokenizer: Tokenizer, text: str) -> list[int]:
        """Return the index of the word of each token."""
        if self.name == "punctuation":
            return tokenizer.word_index(text)
        return tokenizer.word_index(text, at_whitespace=True)


WHITESPACE, PUNCTUATION = WordSplit("whitespace"), WordSplit("punctuation")
WORD_SPLITS: dict[str, WordSplit] = {"whitespace": WHITESPACE, "punctuation": PUNCTUATION}


@dataclass(frozen=True)
class Gold:
    """Gold links of sentence pairs."""

    sure: list[set[Link]]
    possible: list[set[Link]]
    """Possible links, which include the sure ones."""

    def rows(self, rows: slice) -> "Gold":
        """Return the links of some pairs."""
        return Gold(self.sure[rows], self.possible[rows])

    def error_rate(self, links: Sequence[set[Link]]) -> Result:
        """Return the AER of links, with precision and recall."""
        return alignment_error_rate(links, self.sure, self.possible)


@dataclass(frozen=True, order=True)
class Head:
    """A head of a layer, both from 1; 0 = the mean over all layers or heads."""

    layer: int
    head: int

    def __str__(self) -> str:
        if not self.layer:
            return "mean of all layers and heads"
        return f"layer {self.layer}, {f'head {self.head}' if self.head else 'mean of its heads'}"


@dataclass(frozen=True)
class Alignments:
    """Links of every head for sentence pairs, and the share of unknown words."""

    links: dict[Head, list[set[Link]]]
    """Links of each pair, by head; the means of heads included."""
    num_words: tuple[int, int]
    """Number of source and of target words."""
    num_unknown: tuple[int, int]
    """Number of source and of target words with an unknown token."""

    @property
    def unknown_shares(self) -> tuple[float, float]:
        """Shares of unknown words of sources and of targets."""
        (sources, targets), (no_sources, no_targets) = self.num_words, self.num_unknown
        return no_sources / max(sources, 1), no_targets / max(targets, 1)

    def error_rates(self, gold: Gold) -> dict[Head, Result]:
        """Return the AER of every head."""
        return {head: gold.error_rate(links) for head, links in self.links.items()}

    def select(self, gold: Gold, rows: slice) -> Head:
        """Return the head with the smallest AER on some pairs; the first one of equals."""
        part = gold.rows(rows)
        rates = {head: part.error_rate(links[rows]).value for head, links in self.links.items()}
        return min(rates, key=lambda head: rates[head])

    @property
    def mean(self) -> Head:
        """The mean over all layers and heads, or the only head."""
        return next(iter(self.links))

    def find(self, layer: int | None, head: int | None) -> Head:
        """Return a head by its numbers; None = the mean. Raise if there is no such head."""
        num_layers = max(one.layer for one in self.links)
        num_heads = max(one.head for one in self.links)
        # The only layer and the only head need not be named.
        layer = 1 if layer is None and num_layers == 1 else layer
        head = 1 if head is None and num_heads == 1 and layer else head
        wanted = Head(layer or 0, head or 0)
        if wanted not in self.links:
            raise ConfigError(
                f"`--layer` must be 1 to {num_layers} and `--head` 1 to {num_heads}, a head with "
                f"its layer, but they are {layer} and {head}."
            )
        return wanted


def check_task(task: Task[Any]) -> Predictor:
    """Return a run that generates targets from texts, or raise a `ConfigError`."""
    if not isinstance(task, Predictor) or not task.reads_text or task.recipe.task != "generation":
        source = getattr(getattr(task, "source", None), "modality", "")
        kind = f" with the source '{source}'" if source not in ("", "text") else ""
        raise ConfigError(
            "`align` needs a run that generates texts from texts, but the task of this run is "
            f"'{task.recipe.task}'{kind}."
        )
    return task


def align(
    task: Predictor, examples: Sequence[Example], *, split: WordSplit, step: str = "output"
) -> Alignments:
    """Link each target word to the source word with the largest attention weight, for every head.

    The given targets are the inputs of the decoder (teacher forcing). The weight of a source word
    is the sum over its tokens; the weights of a target word are the mean over its tokens.

    Args:
        task: A run with attention.
        examples: Pairs of texts.
        split: The words that links count.
        step: `output`: the weights of the step that outputs a token; `input`: of the next step,
            whose input it is.
    """
    shift = pick(STEPS, step, "--step")
    links: dict[Head, list[set[Link]]] = {}
    for weights in _word_weights(task, examples, split=split, shift=shift):
        for head, by_word in with_means(weights):
            links.setdefault(head, []).append(links_from_weights(by_word))
    field = task.source.text
    assert field is not None
    sides = (
        (field.tokenizer, [example.source for example in examples]),
        (task.target.tokenizer, [example.target for example in examples]),
    )
    (sources, unknown_sources), (targets, unknown_targets) = (
        _count_unknown(tokenizer, texts, split) for tokenizer, texts in sides
    )
    return Alignments(links, (sources, targets), (unknown_sources, unknown_targets))


def _word_weights(
    task: Predictor, examples: Sequence[Example], *, split: WordSplit, shift: int
) -> Iterator[NDArray[Any]]:
    """Yield the weights between words of each pair, (N, H, target words, source words)."""
    field = task.source.text
    assert field is not None
    remaining = iter(examples)
    while chunk := list(islice(remaining, CHUNK)):
        for example, attention in zip(chunk, task.attend(chunk), strict=True):
            if not attention.weights.shape[0]:
                raise ConfigError(
                    "`align` needs a model with attention to the source, but "
                    f"`model.decoder.kind` of this run is '{task.recipe.model.decoder.kind}'."
                )
            sources = split.index(field.tokenizer, example.source)
            targets = split.index(task.target.tokenizer, example.target)
            # The end token of the source belongs to no word; the last row of the target, that of
            # its end token, is the input step of the last token.
            rows = attention.weights[:, :, shift : shift + len(targets), : len(sources)]
            yield merge_to_words(rows.numpy(), targets, sources)


def with_means(weights: NDArray[Any]) -> Iterator[tuple[Head, NDArray[Any]]]:
    """Yield the weights of the mean over all, over each layer's heads, and of every head."""
    num_layers, num_heads = weights.shape[:2]
    if num_layers > 1:
        yield Head(0, 0), weights.mean(axis=(0, 1))
    for layer in range(num_layers):
        if num_heads > 1:
            yield Head(layer + 1, 0), weights[layer].mean(axis=0)
        for head in range(num_heads):
            yield Head(layer + 1, head + 1), weights[layer, head]


def _count_unknown(tokenizer: Tokenizer, texts: Sequence[str], split: WordSplit) -> tuple[int, int]:
    """Return the number of words, and of those with an unknown token."""
    num_words = num_unknown = 0
    for text in texts:
        tokens = tokenizer.encode(text)
        words = split.index(tokenizer, text)
        unknown = {
            word for word, token in zip(words, tokens, strict=True) if token == tokenizer.unk
        }
        num_words += len(split.words(text))
        num_unknown += len(unknown)
    return num_words, num_unknown


def gold_of(examples: Sequence[Example]) -> Gold | None:
    """Return the alignments of examples as sure links; None unless all have one."""
    links = [example.alignment for example in examples]
    if not links or any(link is None for link in links):
        return None
    sure = [set(link or ()) for link in links]
    return Gold(sure, sure)


def fit_gold(
    gold: Gold, examples: Sequence[Example], *, split: WordSplit, name: str
) -> tuple[Gold, list[str]]:
    """Drop gold links outside their pair, and return what was dropped.

    Args:
        gold: Links with one entry per pair.
        examples: The pairs.
        split: The words that links count.
        name: Name of the file, for messages.
    """
    if len(gold.sure) != len(examples):
        raise DataError(
            f"{name} has {len(gold.sure):,} lines of links, but there are {len(examples):,} pairs. "
            "There must be one line per pair; pairs with an empty side are not counted."
        )
    dropped = []
    sure, possible = [], []
    for number, example in enumerate(examples):
        sizes = len(split.words(example.source)), len(split.words(example.target))
        inside = {
            link for link in gold.possible[number] if link[0] < sizes[0] and link[1] < sizes[1]
        }
        for source, target in sorted(gold.possible[number] - inside):
            dropped.append(
                f"line {number + 1:,}: {source}-{target} in a pair of {sizes[0]} and {sizes[1]} "
                "words"
            )
        sure.append(gold.sure[number] & inside)
        possible.append(inside)
    return Gold(sure, possible), dropped


def swap_sides(examples: Sequence[Example]) -> list[Example]:
    """Return pairs with source and target swapped, with their alignments."""
    return [
        replace(
            example,
            source=example.target,
            target=example.source,
            references=(),
            alignment=_swap(example.alignment),
        )
        for example in examples
    ]


def swap_gold(gold: Gold) -> Gold:
    """Return gold links with source and target swapped."""
    sides = ([{(j, i) for i, j in pair} for pair in side] for side in (gold.sure, gold.possible))
    return Gold(*sides)


def _swap(links: Sequence[Link] | None) -> tuple[Link, ...] | None:
    return None if links is None else tuple(sorted((j, i) for i, j in links))


def halves(num_pairs: int) -> tuple[slice, slice]:
    """Return the pairs that select a head and those that it is reported on."""
    middle = num_pairs // 2
    return slice(0, middle), slice(middle, None)


def as_row(result: Result) -> tuple[str, str, str]:
    """Return AER, precision and recall as text."""
    detail = result.detail
    return tuple(  # type: ignore[return-value]
        f"{value:.3f}" for value in (result.value, detail["precision"], detail["recall"])
    )


def head_weights(
    task: Predictor, example: Example, *, split: WordSplit, head: Head | None = None
) -> NDArray[Any]:
    """Return the attention weights between the words of one pair, (target words, source words).

    Args:
        task: A run with attention.
        example: The pair.
        split: The split of texts into words.
        head: A head; the mean over all layers and heads if not given.
    """
    (weights,) = _word_weights(task, [example], split=split, shift=0)
    by_head = dict(with_means(weights))
    return by_head[next(iter(by_head)) if head is None else head]
