"""Key-value caches of a stack of blocks, shared by the beams of each sentence."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.attention.cache import KeyValueCache


@dataclass(frozen=True)
class BeamCache:
    """Key-value caches of all blocks, in which the hypotheses of a sentence form a tree.

    All keys of a sentence lie side by side in one cache, in slots: those of a prefix, then those of
    each step, beam by beam. A mask marks the slots of each hypothesis. Reordering the
    hypotheses of a sentence changes this mask only: neither keys nor values are copied, and
    hypotheses share the keys of their common beginning.

    A step forks the caches; the blocks append to the forks. So a cache is never changed by the
    steps that continue it.
    """

    caches: list[KeyValueCache]
    """One per block."""
    beams: int = 1
    """Hypotheses per sentence, W."""
    length: int = 0
    """Number of tokens of each hypothesis so far."""
    mask: Tensor | None = None
    """(B, W·T, K), True = a token of this step may attend to the slot; None = a single hypothesis,
    whose tokens may attend to themselves and all earlier ones."""
    slots: Tensor | None = None
    """(B, W, K), True = the slot belongs to the hypothesis; None = all do. One row if all sentences
    are equal."""
    positions: Tensor | None = None
    """(K,), position of each slot."""

    @classmethod
    def allocate(
        cls, num_blocks: int, *, beams: int = 1, max_length: int | None = None
    ) -> "BeamCache":
        """Return empty caches.

        Args:
            num_blocks: Number of blocks.
            beams: Hypotheses per sentence.
            max_length: Maximum number of tokens of a hypothesis, if known, to allocate caches.
        """
        capacity = None if max_length is None else beams * max_length
        return cls([KeyValueCache(capacity) for _ in range(num_blocks)], beams=beams)

    def with_prefix(self, mask: Tensor, *, beams: int) -> "BeamCache":
        """Return the caches of one hypothesis per sentence as a prefix of several hypotheses.

        The positions of the next tokens start at 0 again.

        Args:
            mask: (B, K), True = a real position of the prefix.
            beams: Hypotheses per sentence.
        """
        caches = [replace(cache, num_prefix=mask.shape[1]) for cache in self.caches]
        slots = mask[:, None].expand(-1, beams, -1)  # (B, W, K)
        return replace(self, caches=caches, beams=beams, length=0, slots=slots)

    def widen(self, beams: int) -> "BeamCache":
        """Return the caches of several equal hypotheses per sentence, from those of a single one.

        They share all keys.

        Args:
            beams: Hypotheses per sentence.
        """
        assert self.beams == 1 and self.positions is not None
        slots = self.slots
        if slots is None:
            device = self.positions.device
            slots = torch.ones(1, 1, len(self.positions), dtype=torch.bool, device=device)
        caches = []
        for cache in self.caches:
            capacity, length = cache.max_length, cache.length
            rest = None if capacity is None else length + beams * max(0, capacity - length)
            caches.append(replace(cache, max_length=rest))
        return replace(self, caches=caches, beams=beams, slots=slots.expand(-1, beams, -1))

    def fork(self, num_tokens: int, device: torch.device, *, window: int = 0) -> "BeamCache":
        """Return the caches for a step with `num_tokens` tokens per hypothesis.

        Args:
            num_tokens: T.
            device: Device of the mask and the positions.
            window: Number of positions that a token attends to, itself included; 0 = all.
        """
        end = self.length + num_tokens
        if num_tokens == 1:
            new = torch.full((self.beams,), self.length, device=device)
        else:
            new = torch.arange(self.length, end, device=device).repeat(self.beams)
        positions = new if self.positions is None else torch.cat([self.positions, new])
        mask = None
        if self.beams > 1 or self.slots is not None or 0 < window < len(positions):
            mask = self._mask(num_tokens, len(positions), device)
            if window:
                mask = mask & (positions > new[:, None] - window)
        slots = None
        if mask is not None and (self.beams > 1 or self.slots is not None):
            # The last token of a hypothesis attends to all its slots.
            slots = mask
            if num_tokens > 1:
                slots = mask.view(len(mask), self.beams, num_tokens, -1)[:, :, -1]
        caches = [cache.fork(positions) for cache in self.caches]
        return BeamCache(caches, self.beams, end, mask, slots, positions)

    def _mask(self, num_tokens: int, num_slots: int, device: torch.device) -> Tensor:
        """Return the mask (B, W·T, K) of a step."""
        num_new = self.beams * num_tokens
        if num_tokens == 1 and self.slots is not None:
            own = torch.eye(self.beams, dtype=torch.bool, device=device)
            return torch.cat([self.slots, own.expand(len(self.slots), -1, -1)], dim=2)
        new = torch.eye(self.beams, dtype=torch.bool, device=device)  # (W·T, W·T)
        if num_tokens > 1:
            causal = torch.ones(num_tokens, num_tokens, dtype=torch.bool, device=device).tril()
            new = torch.kron(new, causal)
        num_past = num_slots - num_new
        if not num_past:
            return new[None]
        if self.slots is None:
            past = new.new_ones(1, num_new, num_past)
        else:
            past = self.slots[:, :, None].expand(-1, -1, num_tokens, -1).flatten(1, 2)
        return torch.cat([past, new.expand(len(past), -1, -1)], dim=2)

    def keep_last(self, num_kept: int) -> "BeamCache":
        """Return the caches without the slots of all positions but the last `num_kept`."""
        assert self.positions is not None
        first = max(0, len(self.positions) - num_kept * self.beams)
        caches = [cache.fork() for cache in self.caches]
        for cache in caches:
            cache.keep_last(num_kept * self.beams)
        slots = None if self.slots is None else self.slots[..., first:]
        return replace(self, caches=caches, slots=slots, positions=self.positions[first:])

    def by_sentence(self, states: Tensor) -> Tensor:
        """Group the tokens of all hypotheses of a sentence: (B·W, T, D) → (B, W·T, D)."""
        return states.reshape(len(states) // self.beams, -1, states.shape[-1])

    def reorder(self, rows: Tensor) -> "BeamCache":
        """Return the caches of reordered hypotheses.

        Args:
            rows: (B·W,), the hypothesis that each new one continues: of the same sentence, or any
                if there is one hypothesis per sentence.
        """
        if self.beams == 1:
            return self.select(rows)
        if self.slots is None:
            return self
        slots = self.slots.expand(len(rows) // self.beams, -1, -1)
        slots = slots.flatten(0, 1).index_select(0, rows).view(slots.shape)
        return BeamCache(self.caches, self.beams, self.length, self.mask, slots, self.positions)

    def select(self, sentences: Tensor) -> "BeamCache":
        """Return the caches of some sentences, (B,), with all their hypotheses."""
        slots = self.slots
        if slots is not None and len(slots) > 1:
            slots = slots[sentences]
        return replace(self, caches=[cache[sentences] for cache in self.caches], slots=slots)


if __name__ == "__main__":
    cache = BeamCache.allocate(1, beams=2).fork(1, torch.device("cpu")).fork(1, torch.device("cpu"))
    best = cache.reorder(torch.tensor([1, 1])).fork(1, torch.device("cpu"))
    print("slots of two hypotheses that continue the second beam:", best.mask, sep="\n")
