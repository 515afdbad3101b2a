"""What a masked language model says about some places of texts."""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from regard.data.text.field import TextField
from regard.models.masked_lm import MaskedModel

Asked = tuple[list[int], list[int]]
"""Token ids of a text, ends included, and the places in it that are asked about."""


def tell(
    model: MaskedModel, asked: Iterable[Asked], *, field: TextField, max_tokens: int
) -> Iterator[Tensor]:
    """Say how likely every token is at some places of texts.

    Args:
        model: What says it.
        asked: The texts and places, in any number: they are read as they are needed.
        field: It pads.
        max_tokens: Positions in a batch at most.

    Yields:
        Log-probabilities (L, V) for the places of each text, on the host.
    """
    device = next(model.parameters()).device
    for chunk in _cut(asked, max_tokens):
        values, mask = field.stack([ids for ids, _ in chunk])
        width = values.shape[1]
        flat = [row * width + place for row, (_, places) in enumerate(chunk) for place in places]
        with torch.inference_mode():
            states = model.encode(values.to(device), mask).states
            logits = model.tell(states, torch.tensor(flat, device=device))
            log_probs = logits.float().log_softmax(-1).cpu()
        first = 0
        for _, places in chunk:
            yield log_probs[first : first + len(places)]
            first += len(places)


def _cut(asked: Iterable[Asked], max_tokens: int) -> Iterator[list[Asked]]:
    """Cut what is asked into batches under a budget, in order."""
    chunk: list[Asked] = []
    longest = 0
    for ids, places in asked:
        longest = max(longest, len(ids))
        if chunk and longest * (len(chunk) + 1) > max_tokens:
            yield chunk
            chunk, longest = [], len(ids)
        chunk.append((ids, places))
    if chunk:
        yield chunk
