"""Sources as inputs of attribution: values with gradients, and sources with parts left out."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from regard.core.module import Embedding
from regard.data.text.tokenizers import Tokenizer
from regard.models.encoders.rnn import RnnEncoder, reversed_order
from regard.models.interfaces import Encoder, TokenEncoder
from regard.tasks.prediction import cell_names

GRID = 8
"""Rows and columns of the cells of an image whose encoder has a single position."""


class SourcePart(ABC):
    """A source whose S parts, such as tokens or cells, are left out one by one or together."""

    names: tuple[str, ...]
    """Labels of the parts."""
    is_free: Tensor
    """(S,), False = a part that every source has, such as the end token. It is never left out."""
    values: Tensor
    """Values that gradients are computed for, such as embeddings (S, D) or pixels (C, Y, X)."""
    baseline: Tensor
    """Values of the same shape that hold no information."""

    @abstractmethod
    @contextmanager
    def with_values(self, values: Tensor) -> Iterator[tuple[Any, Tensor]]:
        """Give the model inputs and mask for rows of values, inside the block.

        Args:
            values: (B, ...), in place of `self.values`.
        """
        yield from ()

    @abstractmethod
    def without(self, kept: Tensor) -> tuple[Any, Tensor]:
        """Return the model inputs and mask of copies of the source without some parts.

        Args:
            kept: (B, S), False = left out.
        """

    @abstractmethod
    def sum_parts(self, products: Tensor) -> Tensor:
        """Sum products with the shape of `values` over each part, (S,)."""

    def attention_by_part(self, weights: Tensor) -> Tensor:
        """Return attention weights (T, S) of parts from those of the encoder's positions."""
        return weights

    @property
    def num_positions(self) -> int:
        """Number of positions, which the memory of a forward pass grows with."""
        return len(self.names)


class TextSource(SourcePart):
    """The tokens of a text. A token that is left out is deleted.

    Args:
        ids: Token ids, with start and end tokens.
        tokenizer: The tokenizer.
        embedding: The token embeddings, which are the values.
        encoder: The encoder of the text; None for a language model.
    """

    def __init__(
        self,
        ids: Sequence[int],
        tokenizer: Tokenizer,
        *,
        embedding: Embedding,
        encoder: Encoder | None = None,
    ) -> None:
        self.embedding, self._encoder, self._pad = embedding, encoder, tokenizer.pad
        self.ids = torch.tensor(ids, device=self.embedding.weight.device)
        self.names = tokenizer.tokens(ids)
        self.is_free = is_content(self.ids, tokenizer)
        self.values, self.baseline = embed_tokens(self.ids, tokenizer, self.embedding)

    @contextmanager
    def with_values(self, values: Tensor) -> Iterator[tuple[Any, Tensor]]:
        """Give the token ids and their mask, with `values` (B, S, D) as their embeddings."""
        ids = self.ids.expand(len(values), -1)
        mask = torch.ones_like(ids, dtype=torch.bool)
        if embeds_reversed(self._encoder):
            values = values[:, reversed_order(mask[:1])[0]]
        with replace_outputs((self.embedding, values)):
            yield ids, mask

    def without(self, kept: Tensor) -> tuple[Any, Tensor]:
        """Return the kept token ids of each row, padded at the end, and their mask."""
        return delete_tokens(self.ids, kept, self._pad)

    def sum_parts(self, products: Tensor) -> Tensor:
        """Sum the products of each token over the embedding, (S,)."""
        return products.sum(-1)

    def attention_by_part(self, weights: Tensor) -> Tensor:
        """Divide the weight of a position among its tokens, if the encoder joins several."""
        ids = self.ids[None].cpu()
        if self._encoder is None:
            return weights
        groups = self._encoder.memory_positions(ids, torch.ones_like(ids, dtype=torch.bool))
        if groups is None:
            return weights
        sizes = torch.bincount(groups[0], minlength=weights.shape[1]).clamp(min=1)
        return (weights / sizes)[:, groups[0]]


class GridSource(SourcePart):
    """The cells of an image or a video, or the frames of a recording.

    Values are standardised, so zero is the mean of the training data: it is the value of cells that
    are left out, and the baseline.

    Args:
        values: (C, Y, X), (F, C, Y, X) or (F, M), standardised.
        grid: Rows and columns of the cells; frames, rows and columns of a video; or the number of
            segments of a recording.
        names: Label of each cell; its row and column if not given.
    """

    def __init__(
        self, values: Tensor, grid: tuple[int, ...], *, names: tuple[str, ...] = ()
    ) -> None:
        self.values, self.baseline = values, torch.zeros_like(values)
        self.grid = grid
        self.names = names or cell_names(grid)
        self.is_free = torch.ones(math.prod(grid), dtype=torch.bool, device=values.device)
        self._cells = number_cells(values, grid)

    @contextmanager
    def with_values(self, values: Tensor) -> Iterator[tuple[Any, Tensor]]:
        """Give rows of pixels or frames and their mask."""
        yield values, self._mask(len(values))

    def without(self, kept: Tensor) -> tuple[Any, Tensor]:
        """Return the pixels or frames with zeros in the cells that are left out, and the mask."""
        visible = kept[:, self._cells]  # (B, ...)
        return torch.where(visible, self.values, 0.0), self._mask(len(kept))

    def sum_parts(self, products: Tensor) -> Tensor:
        """Sum the products of each cell, (S,)."""
        sums = products.new_zeros(len(self.names))
        return sums.index_add(0, self._cells.flatten(), products.flatten())

    @property
    def num_positions(self) -> int:
        """Number of pixels or numbers divided by 16, about the width of an embedding."""
        return max(len(self.names), self.values.numel() // 16)

    def _mask(self, rows: int) -> Tensor:
        length = len(self.values) if self.values.dim() == 2 else 1
        return torch.ones(rows, length, dtype=torch.bool, device=self.values.device)


def find_embedding(encoder: Encoder) -> Embedding:
    """Return the token embedding of an encoder of texts."""
    found = _token_encoder(encoder)
    assert found is not None
    return found.embedding


def embeds_reversed(encoder: Encoder | None) -> bool:
    """Return whether an encoder embeds the tokens of texts in reversed order."""
    found = None if encoder is None else _token_encoder(encoder)
    return isinstance(found, RnnEncoder) and found.config.is_reversed


def _token_encoder(encoder: Encoder) -> TokenEncoder | None:
    return next((part for part in encoder.modules() if isinstance(part, TokenEncoder)), None)


def is_content(ids: Tensor, tokenizer: Tokenizer) -> Tensor:
    """Return which of the ids are no padding, start or end tokens."""
    special = torch.tensor([tokenizer.pad, tokenizer.sos, tokenizer.eos], device=ids.device)
    return ~torch.isin(ids, special)


def embed_tokens(ids: Tensor, tokenizer: Tokenizer, embedding: Embedding) -> tuple[Tensor, Tensor]:
    """Return the embeddings of tokens (S,), and the baseline of integrated gradients, (S, D) each.

    In the baseline, content has the mean embedding of the vocabulary. Zeros would make integrated
    gradients inaccurate: normalised layers change abruptly close to zero.
    """
    with torch.no_grad():
        values = embedding(ids)
        return values, torch.where(
            is_content(ids, tokenizer)[:, None], embedding.weight.mean(0), values
        )


def delete_tokens(ids: Tensor, kept: Tensor, pad: int) -> tuple[Tensor, Tensor]:
    """Return copies of a sequence (S,) without some tokens, padded at the end, and their mask.

    Args:
        ids: (S,) token ids.
        kept: (B, S), False = deleted.
        pad: The padding token.
    """
    # A stable sort moves the kept tokens to the front in their order.
    order = kept.to(torch.uint8).argsort(dim=1, descending=True, stable=True)
    lengths = kept.sum(1)
    longest = max(int(lengths.max()), 1)
    mask = torch.arange(longest, device=ids.device) < lengths[:, None]
    return ids[order][:, :longest].masked_fill(~mask, pad), mask


def number_cells(values: Tensor, grid: tuple[int, ...]) -> Tensor:
    """Return the number of the cell of each value, with the shape of `values`.

    Args:
        values: (C, Y, X), (F, C, Y, X) or (F, M).
        grid: As of `GridSource`.
    """
    axes = {2: (0,), 3: (1, 2), 4: (0, 2, 3)}[values.dim()]
    numbers = torch.zeros((1,) * values.dim(), dtype=torch.long, device=values.device)
    for axis, size in zip(axes, grid, strict=True):
        length = values.shape[axis]
        shape = [length if other == axis else 1 for other in range(values.dim())]
        cells = torch.arange(length, device=values.device) * size // length
        numbers = numbers * size + cells.view(shape)
    return numbers.expand(values.shape)


@contextmanager
def replace_outputs(*replaced: tuple[nn.Module, Tensor]) -> Iterator[None]:
    """Replace the output of modules by tensors.

    Args:
        replaced: Modules with their outputs; a module that is called several times occurs several
            times, in the order of its calls.
    """
    waiting: dict[nn.Module, list[Tensor]] = {}
    for module, output in replaced:
        waiting.setdefault(module, []).append(output)

    def hook_of(outputs: list[Tensor]) -> Callable[..., Tensor]:
        return lambda *_: outputs.pop(0)

    handles = [
        module.register_forward_hook(hook_of(outputs)) for module, outputs in waiting.items()
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
