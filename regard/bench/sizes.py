"""Sizes of training benchmarks: a recipe with a vocabulary, and random batches of token ids."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import cycle, islice

import torch

from regard.core.device import Precision
from regard.core.tables import pick
from regard.data.batch import Batch
from regard.data.text.field import both_sides
from regard.data.text.tokenizers import SPECIAL_TOKENS, Tokenizer, TokenizerConfig
from regard.data.text.vocabulary import train_tokenizer
from regard.runs.recipes import load_recipe
from regard.tasks.generation.recipe import Recipe
from regard.tasks.generation.task import Predictor

NUM_BATCHES = 8
"""Different batches, used in turn."""

MANY = 1_000_000
"""Steps that no measurement reaches."""

_ENDLESS = (
    f"train.max_steps={MANY}",
    "train.max_epochs=0",
    f"train.validate_every={MANY}",
    "train.patience=0",
    "train.average_last=0",
)


@dataclass(frozen=True)
class Size:
    """A model and the shape of its batches."""

    recipe: str
    """Name of the recipe."""
    num_pairs: int
    """Pairs in a batch, which is one step."""
    length: int
    """Tokens of each source, and predicted tokens of each target; the maximum with padding."""
    overrides: tuple[str, ...] = ()
    """Overrides of the recipe."""
    vocab_size: int = 8000
    """Size of the vocabulary that source and target share."""

    def load(
        self, precision: Precision = "fp32", *, seed: int = 1, can_compile: bool = True
    ) -> Recipe:
        """Return the recipe with training that does not end and is not validated.

        Args:
            precision: Precision of matrix products.
            seed: Seed of weights and dropout.
            can_compile: Whether the trainer compiles the model where it usually does.
        """
        choice = "auto" if can_compile else "never"
        changes = (f"train.precision={precision}", f"train.compile={choice}", f"seed={seed}")
        recipe: Recipe = load_recipe(self.recipe, (*self.overrides, *_ENDLESS, *changes))
        return recipe


_TENTH = ("model.encoder.dropout=0.1", "model.decoder.dropout=0.1")
_TINY = tuple(
    f"model.{side}.{setting}"
    for side in ("encoder", "decoder")
    for setting in ("dim=16", "num_layers=1", "num_heads=2", "feed_forward_dim=32")
)

SIZES: dict[str, Size] = {
    "small": Size("vaswani2017-small", num_pairs=128, length=16, overrides=_TENTH),
    "base": Size("vaswani2017-base", num_pairs=1024, length=24),
    "bahdanau2015": Size("bahdanau2015", num_pairs=128, length=24),
    "gehring2017": Size("gehring2017", num_pairs=160, length=24),
}
"""Sizes by name."""

TINY = Size("vaswani2017-small", num_pairs=4, length=5, overrides=_TINY, vocab_size=50)
"""A size that trains in milliseconds, to try the command; not listed."""


def find_size(name: str) -> Size:
    """Return a size by name, or raise a `ConfigError`."""
    return TINY if name == "tiny" else pick(SIZES, name, "--size")


def build_task(size: Size, recipe: Recipe, *, device: torch.device) -> Predictor:
    """Build the task of a size with new weights, as training does."""
    fields = {**both_sides(_tokenizer(size.vocab_size))}
    return Predictor.from_scratch(recipe, fields, device=device)


@cache
def _tokenizer(vocab_size: int) -> Tokenizer:
    """Return a vocabulary of `vocab_size` tokens: special tokens and numbers."""
    words = " ".join(map(str, range(vocab_size)))
    return train_tokenizer(TokenizerConfig(kind="whitespace", vocab_size=vocab_size), [words])


class RandomBatches:
    """Batches of random token ids, the same ones for the same seed, again and again.

    Args:
        size: Shape of the batches.
        seed: Seed of token ids and lengths.
        is_padded: Whether lengths differ: uniform from half the length to all of it.
        is_pinned: Whether the batches are in pinned memory, for copies to a GPU.
    """

    def __init__(
        self, size: Size, *, seed: int, is_padded: bool = False, is_pinned: bool = False
    ) -> None:
        self.pad = _tokenizer(size.vocab_size).pad
        generator = torch.Generator().manual_seed(seed)
        self._batches = [
            _random_batch(size, generator, is_padded=is_padded) for _ in range(NUM_BATCHES)
        ]
        if is_pinned:
            self._batches = [_pin(batch) for batch in self._batches]
        self.tokens_per_batch = sum(batch.num_target_tokens for batch in self._batches) / len(
            self._batches
        )

    def epoch(self, number: int, *, skip: int = 0) -> Iterator[Batch]:
        """Yield the batches in turn, `MANY` of them."""
        return islice(cycle(self._batches), skip, MANY)

    def num_batches(self, number: int) -> int:
        """Return the number of batches of an epoch."""
        return MANY


def _random_batch(size: Size, generator: torch.Generator, *, is_padded: bool) -> Batch:
    tokenizer = _tokenizer(size.vocab_size)
    num, length = size.num_pairs, size.length

    def sample(first: int, shape: tuple[int, ...], last: int) -> torch.Tensor:
        return torch.randint(first, last, shape, generator=generator)

    def side() -> tuple[torch.Tensor, torch.Tensor]:
        ids = sample(len(SPECIAL_TOKENS), (num, length), size.vocab_size)
        lengths = sample(length // 2, (num, 1), length + 1) if is_padded else length
        mask = (torch.arange(length) < lengths).expand(num, -1)  # (B, L)
        return ids.masked_fill(~mask, tokenizer.pad), mask

    source, source_mask = side()
    target, target_mask = side()
    start = torch.full((num, 1), tokenizer.sos)
    return Batch(
        source=source,
        source_mask=source_mask.contiguous(),
        target=torch.cat([start, target], dim=1),
        target_mask=torch.cat([torch.ones(num, 1, dtype=torch.bool), target_mask], dim=1),
        rows=tuple(range(num)),
    )


def _pin(batch: Batch) -> Batch:
    return Batch(
        source=batch.source.pin_memory(),
        source_mask=batch.source_mask.pin_memory(),
        target=batch.target.pin_memory(),
        target_mask=batch.target_mask.pin_memory(),
        rows=batch.rows,
    )
