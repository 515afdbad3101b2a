"""Warning about tokens of validation data that the vocabularies do not have."""

from collections.abc import Sequence

import torch

from regard.core.logging import logger
from regard.data.batch import Batch
from regard.data.text.field import TextField
from regard.tasks.generation.recipe import Recipe

MAX_UNKNOWN_TARGETS = 0.01
"""Largest share of unknown target tokens without a warning: these can never be predicted."""

MAX_UNKNOWN_SOURCES = 0.05
"""Largest share of unknown source tokens without a warning."""

WORDS = ("word", "whitespace", "wordpiece")
"""Kinds of tokens for which a whole word is unknown."""


def warn_of_unknown_tokens(
    batches: Sequence[Batch], recipe: Recipe, *, source: object, target: TextField
) -> None:
    """Log the share of unknown tokens of a side if it is high, and the setting to change.

    Args:
        batches: Validation data.
        recipe: Its data settings name the kinds of tokens.
        source: Field of the source; only texts are counted.
        target: Field of the target.
    """
    if not batches:
        return
    sides = {"target": (target, MAX_UNKNOWN_TARGETS), "source": (source, MAX_UNKNOWN_SOURCES)}
    for side, (field, limit) in sides.items():
        if not isinstance(field, TextField):
            continue
        share = _unknown_share(batches, side, field)
        if share > limit:
            # A joint vocabulary has the settings of the source.
            setting = "source" if recipe.data.is_joint else side
            kind = "bpe" if getattr(recipe.data, setting).kind in WORDS else "byte"
            logger.warning(
                "%.1f %% of the %s tokens of the validation data are not in the vocabulary; "
                "`data.%s.kind=%s` has no unknown words.",
                100 * share,
                side,
                setting,
                kind,
            )


def _unknown_share(batches: Sequence[Batch], side: str, field: TextField) -> float:
    """Return the share of unknown tokens, special tokens not counted."""
    tokenizer = field.tokenizer
    special = torch.tensor([tokenizer.pad, tokenizer.sos, tokenizer.eos])
    num_unknown = num_tokens = 0
    for batch in batches:
        ids = getattr(batch, side)
        num_unknown += int((ids == tokenizer.unk).sum())
        num_tokens += int((~torch.isin(ids, special)).sum())
    return num_unknown / max(num_tokens, 1)
