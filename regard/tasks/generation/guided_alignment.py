"""Guided alignment: a loss that trains attention weights towards gold word alignments."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from torch import Tensor, nn

from regard.attention.attend import Attention
from regard.attention.recording import AttentionMaps, record
from regard.core.errors import ConfigError
from regard.data.batching import Sequences
from regard.data.example import Alignment, Example
from regard.data.text.tokenizers import Tokenizer
from regard.models.heads.copying import CopyAttention

if TYPE_CHECKING:
    from regard.tasks.generation.task import Predictor

MIN_WEIGHT = 1e-8
"""Smallest weight in the logarithm: positions outside a window have the weight 0."""


def alignment_loss(weights: Tensor, links: Tensor) -> Tensor:
    """Compute the cross entropy of gold alignments under attention weights, per target token.

    -Σ_j A_tj log α_tj (Chen et al. 2016, eq. 9), the mean over heads. A token without links has
    the loss 0.

    Args:
        weights: (B, H, T, S), attention weights α.
        links: (B, T, S), gold alignment A; a row sums to 1, or to 0 without links.

    Returns:
        (B, T).
    """
    log_weights = weights.float().clamp(min=MIN_WEIGHT).log()
    return -(links[:, None] * log_weights).sum(-1).mean(1)


@contextmanager
def record_guided(task: "Predictor", links: Tensor | None) -> Iterator[AttentionMaps | None]:
    """Record the attention that links (B, T, S) train, with gradients; nothing without links."""
    if links is None:
        yield None
        return
    with record(find_attention(task), has_gradients=True) as recorded:
        yield recorded


def guided_term(task: "Predictor", recorded: AttentionMaps, links: Tensor) -> Tensor:
    """Return the weighted alignment loss of a batch, (B, T)."""
    config = task.recipe.alignment
    heads = [head - 1 for head in config.heads]
    # Layers that share one module are calls of it; the last call is that of the last layer.
    weights = recorded.stack()[:, 0, heads, -links.shape[1] :]  # (B, H, T, S)
    return config.weight * alignment_loss(weights, links)


def find_attention(task: "Predictor") -> nn.Module:
    """Return the attention of the decoder that guided alignment trains."""
    layers = [
        module
        for module in task.model.decoder.modules()
        if isinstance(module, Attention)
        and not module.is_self
        and not isinstance(module, CopyAttention)
    ]
    if not layers:
        raise ConfigError(
            "`alignment.weight` above 0 needs a decoder with attention, but `model.decoder.kind` "
            f"is '{task.recipe.model.decoder.kind}'. Set it to 0, or use 'bahdanau'."
        )
    number = task.recipe.alignment.layer or max(len(layers) - 1, 1)
    if number > len(layers):
        raise ConfigError(
            f"`alignment.layer` must be at most {len(layers)}, the number of layers with attention "
            f"to the source, but is {number}."
        )
    return layers[number - 1]


def token_links(
    task: "Predictor",
    examples: Sequence[Example],
    rows: Iterable[int],
    *,
    sources: Sequences,
    targets: Sequences,
) -> list[Alignment] | None:
    """Return the links between tokens of each pair: every token of a word has its links.

    None without guided alignment.

    Args:
        task: The task.
        examples: Pairs with alignments between words; a pair without has no links.
        rows: Indexes of the examples of the sources and targets.
        sources: Token ids of the sources with end tokens, perhaps truncated.
        targets: Token ids of the targets with start and end tokens.
    """
    if not task.recipe.alignment.weight:
        return None
    find_attention(task)
    examples = [examples[row] for row in rows]
    if any(isinstance(example.source, tuple) for example in examples):
        raise ConfigError(
            "`alignment.weight` above 0 needs sources of one text, but these have several. "
            "Set it to 0."
        )
    if not any(example.alignment for example in examples):
        raise ConfigError(
            "`alignment.weight` above 0 needs word alignments of the training pairs, but they "
            "have none. Name a Pharaoh file as `data.links`; `regard data links` writes one."
        )
    field = task.source.text
    assert field is not None
    tokenizers = field.tokenizer, task.target.tokenizer
    return [
        _expand(example, tokenizers, limits=(len(source) - 1, len(target) - 2))
        for example, source, target in zip(examples, sources, targets, strict=True)
    ]


def _expand(
    example: Example, tokenizers: tuple[Tokenizer, Tokenizer], *, limits: tuple[int, int]
) -> Alignment:
    """Return links between tokens, of those below the limits, from links between words."""
    if not example.alignment:
        return ()
    tokens = [
        _tokens_by_word(tokenizer.word_index(text)[:limit])
        for tokenizer, text, limit in zip(
            tokenizers, (example.source, example.target), limits, strict=True
        )
    ]
    return tuple(
        (source, target)
        for source_word, target_word in example.alignment
        for source in tokens[0].get(source_word, ())
        for target in tokens[1].get(target_word, ())
    )


def _tokens_by_word(words: Sequence[int]) -> dict[int, list[int]]:
    tokens: dict[int, list[int]] = {}
    for position, word in enumerate(words):
        tokens.setdefault(word, []).append(position)
    return tokens
