"""Base classes of tasks that read sources with one field, with or without a single encoder."""

from collections.abc import Iterator, Sequence, Sized
from typing import Any, cast

from regard.core.logging import logger
from regard.data.batch import Values, map_tensors
from regard.data.labels import LabelledBatches
from regard.data.modality import SourceField
from regard.data.token_ids import Shorten, lengths_of, shorten_ids, truncate
from regard.models.encoders import max_tokens
from regard.models.interfaces import Encoder
from regard.tasks.base import AnyRecipe, Task
from regard.tasks.batches import EncoderBatch

MAX_TOKENS = 5_000
"""Maximum number of tokens of a text outside of training, unless training allows more."""


def warn_if_long(items: Sequence[Sized], max_length: int, message: str) -> bool:
    """Log how many items are longer than `max_length`; return whether there are any.

    Args:
        items: Texts as tokens, or items of another modality.
        max_length: The maximum length.
        message: A format string for the number of long items, that of all items, and `max_length`.
    """
    num_long = int((lengths_of(items) > max_length).sum())
    if num_long:
        logger.warning(message, f"{num_long:,}", f"{len(items):,}", max_length)
    return num_long > 0


def limit_texts(
    items: Sequence[Any], max_length: int, *, noun: str, shorten: Shorten = shorten_ids
) -> Sequence[Any]:
    """Truncate texts whose attention would take too much memory, and log their number.

    Args:
        items: Texts as tokens, perhaps with an image each.
        max_length: Maximum length in training; longer texts are kept up to `MAX_TOKENS`.
        noun: Name of the texts in the log.
        shorten: Function that truncates an item.
    """
    limit = max(MAX_TOKENS, max_length)
    if not warn_if_long(items, limit, f"truncated %s of %s {noun} to %d tokens, the maximum"):
        return items
    return truncate(items, limit, shorten)


class SourceTask(Task[AnyRecipe]):
    """A task that reads sources with one field."""

    source: SourceField

    @property
    def source_field(self) -> SourceField:
        """The field of the sources."""
        return self.source

    @property
    def reads_text(self) -> bool:
        """Whether sources are texts alone."""
        return self.source_field.modality == "text"

    def parse_source(self, source: Any) -> Any:
        """Return a source as its field reads it: a line of several columns becomes a tuple."""
        return source

    def read_sources(self, sources: Sequence[Any]) -> list[Any]:
        """Return sources as items of their field."""
        return self.source_field.read_all([self.parse_source(source) for source in sources])

    def item_batches(
        self, items: Sequence[Any], targets: Sequence[Any], *, is_shuffled: bool = False
    ) -> LabelledBatches:
        """Return items of the source field with their targets as batches."""
        return LabelledBatches(
            items,
            targets,
            self.recipe.data.batch,
            fields=(self.source_field,),
            seed=self.recipe.seed,
            is_shuffled=is_shuffled,
            is_pinned=self.device.type == "cuda",
        )

    def inputs(self, batch: Any) -> Values:
        """Return the model inputs of a batch, on the model's device."""
        values = map_tensors(batch.source, lambda part: part.to(self.device, non_blocking=True))
        return self.source_field.finish(values, is_training=self.model.training)


class EncoderTask(SourceTask[AnyRecipe]):
    """A task whose model has one encoder; it implements `Embeds`."""

    @property
    def encoder(self) -> Encoder:
        """The encoder of the model."""
        return cast(Encoder, self.model.encoder)

    @property
    def max_source_length(self) -> int:
        """Number of learned positions of the encoder; 0 = no limit."""
        return max_tokens(cast(Any, self.recipe).model.encoder)

    def encoder_items(self, sources: Sequence[Any]) -> list[Any]:
        """Return sources as items of the source field, truncated to the encoder's limit."""
        items, max_length = self.limit_sources(self.read_sources(sources)), self.max_source_length
        message = "shortened %s of %s texts to %d tokens, the learned positions of the encoder"
        if not max_length or not warn_if_long(items, max_length, message):
            return [*items]
        return [self.shorten_item(item, max_length) for item in items]

    def limit_sources(self, items: Sequence[Any]) -> Sequence[Any]:
        """Return sources, of which very long texts are truncated."""
        if self.source_field.text is None:
            return items
        limit = self.recipe.data.batch.max_length
        return limit_texts(items, limit, noun="sources", shorten=self.shorten_item)

    def limit_pairs(
        self, sources: Sequence[Any], targets: Sequence[list[int]]
    ) -> tuple[Sequence[Any], Sequence[list[int]]]:
        """Return sources and target texts, of which very long texts are truncated."""
        limit = self.recipe.data.batch.max_length
        return self.limit_sources(sources), limit_texts(targets, limit, noun="targets")

    def shorten_item(self, item: Any, max_length: int) -> Any:
        """Truncate an item to `max_length` positions."""
        return self.source_field.shorten(item, max_length)

    def encoder_batches(self, sources: Sequence[Any]) -> Iterator[EncoderBatch]:
        """Return sources as inputs of the encoder, in batches of similar length."""
        if not sources:
            return iter(())
        batches = self.item_batches(self.encoder_items(sources), [0] * len(sources))
        return (
            EncoderBatch(self.inputs(batch), batch.source_mask, batch.rows)
            for batch in batches.epoch(0)
        )
