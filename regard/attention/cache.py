"""The keys and values that a self-attention layer keeps between decoding steps."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor


@dataclass
class _Buffer:
    """Preallocated keys and values; several caches may share one."""

    keys: Tensor  # (B, H, L, E), L = positions that fit
    values: Tensor  # (B, H, L, E)
    length: int  # positions written, by whichever cache wrote last

    def is_free(self, start: int, end: int) -> bool:
        """Return whether these positions may be written in place."""
        # Autograd may have saved the buffer, whichever of keys, values and queries need gradients.
        is_writable = not torch.is_grad_enabled() and (
            torch.is_inference_mode_enabled() or not self.keys.is_inference()
        )
        return is_writable and self.length == start and end <= self.keys.shape[2]


@dataclass
class KeyValueCache:
    """Keys and values of the positions that one self-attention layer has read.

    A decoder's step forks the caches of its state, and its blocks append to the forks; a state is
    never changed by the steps that continue it. Positions in the buffer, of which a cache sees
    those from `first` on:

        forgotten | first … earlier steps … past | this step … end | room

    Positions are written in place into a buffer with room for `max_length` of them; without that
    limit the buffer grows. A cache sees a range of its buffer, and writing never changes what
    another cache sees: where the buffer was written behind this range before, or where gradients
    are recorded, the range is copied first.
    """

    max_length: int | None = None
    """Positions to allocate at once; None = not known."""
    prefix: tuple[Tensor, Tensor] | None = None
    """Keys and values (B, H, S, E) that are seen before the cached ones, for one step."""
    _buffer: _Buffer | None = field(default=None, repr=False)
    _first: int = 0  # where the visible range begins in the buffer
    _past: int = 0  # where the positions of earlier steps end
    _end: int = 0  # where the visible range ends
    _num_forgotten: int = 0  # positions before the visible range

    @property
    def length(self) -> int:
        """Number of visible positions."""
        return self._end - self._first

    @property
    def position(self) -> int:
        """Position of the first token of this step: how many were read before it."""
        return self._num_forgotten + self._past - self._first

    @property
    def visible(self) -> tuple[Tensor, Tensor]:
        """The keys and values of the visible positions, (B, H, L, E) each."""
        return self._range(self._end)

    def fork(self) -> "KeyValueCache":
        """Return a cache for the next step, which leaves this one as it is."""
        return replace(self, prefix=None, _past=self._end)

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Write the positions of this step and return all keys and values that are seen.

        Appending again replaces what was appended, so that a checkpointed block may run twice.

        Args:
            keys: (B, H, T, E).
            values: (B, H, T, E).
        """
        buffer, end = self._buffer, self._past + keys.shape[2]
        if buffer is None or not buffer.is_free(self._past, end):
            self._copy_past(keys, values)
        else:
            buffer.keys[:, :, self._past : end] = keys
            buffer.values[:, :, self._past : end] = values
            buffer.length = self._end = end
        if self.prefix is None:
            return self.visible
        keys, values = (
            torch.cat(pair, dim=2) for pair in zip(self.prefix, self.visible, strict=True)
        )
        return keys, values

    def positions(self, device: torch.device) -> Tensor:
        """Return the positions of all keys that are seen; those of a prefix begin at 0, too."""
        own = torch.arange(self.length, device=device) + self._num_forgotten
        if self.prefix is None:
            return own
        return torch.cat([torch.arange(self.prefix[0].shape[2], device=device), own])

    def forget(self, num_kept: int) -> None:
        """Drop all but the last visible positions."""
        first = max(self._first, self._end - num_kept)
        self._num_forgotten += first - self._first
        self._first = first

    def __getitem__(self, rows: Tensor) -> "KeyValueCache":
        """Return the cache whose row i is row `rows[i]` of this one, with what is used of it."""
        if self._buffer is None:
            return self.fork()
        keys, values = (part.index_select(0, rows) for part in self.visible)
        length = self.length
        room = self._room(length)
        buffer = _Buffer(_join([keys], room), _join([values], room), length)
        return replace(self.fork(), _buffer=buffer, _first=0, _past=length, _end=length)

    def _copy_past(self, keys: Tensor, values: Tensor) -> None:
        """Take a new buffer with the positions of earlier steps and the new ones."""
        past = () if self._buffer is None else self._range(self._past)
        pieces = [[*past[:1], keys], [*past[1:], values]]
        num_past = self._past - self._first
        total = num_past + keys.shape[2]
        # A whole target is read in one step, which no other follows: keep the keys without a copy.
        room = total if self.max_length is None and not num_past else self._room(total)
        self._buffer = _Buffer(_join(pieces[0], room), _join(pieces[1], room), total)
        self._first, self._past, self._end = 0, num_past, total

    def _room(self, length: int) -> int:
        """Return how many positions to allocate for so many."""
        return self.max_length if self.max_length and self.max_length >= length else 2 * length

    def _range(self, end: int) -> tuple[Tensor, Tensor]:
        assert self._buffer is not None
        span = slice(self._first, end)
        return self._buffer.keys[:, :, span], self._buffer.values[:, :, span]


def _join(pieces: Sequence[Tensor], room: int) -> Tensor:
    """Join pieces (B, H, L, E) along L, with room for more unless gradients are recorded."""
    length = sum(piece.shape[2] for piece in pieces)
    if room <= length or torch.is_grad_enabled():
        return pieces[0] if len(pieces) == 1 else torch.cat(list(pieces), dim=2)
    batch, num_heads, _, dim = pieces[0].shape
    joined = pieces[0].new_empty(batch, num_heads, room, dim)
    torch.cat(list(pieces), dim=2, out=joined[:, :, :length])
    return joined


if __name__ == "__main__":
    cache = KeyValueCache(max_length=4)
    for position in range(3):
        cache, new = cache.fork(), torch.full((1, 1, 1, 1), float(position))
        print(f"keys at step {position}:", cache.append(new, new)[0].flatten().tolist())
