"""Translation as one language model: source and target are one text, read from left to right."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from regard.attention.masks import causal
from regard.attention.multihead import Heads, Places, SelfAttention
from regard.core.config import at_least
from regard.models.interfaces import Decoder, Memory, Output, State, repeat_rows
from regard.models.transformer import (
    TransformerBlock,
    TransformerBlocks,
    TransformerConfig,
    build_final_norm,
    build_positions,
    place,
)


@dataclass(frozen=True, kw_only=True)
class PrefixDecoderConfig(TransformerConfig):
    """A stack of blocks that read the source, then go on with the target."""

    kind: Literal["prefix"] = "prefix"
    """What kind of decoder this is."""
    source_weight: float = 0.0
    """Weight of foretelling the source itself; above 0 it needs the encoder 'embedding' and a joint
    vocabulary."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("source_weight", self.source_weight, 0.0)


class PrefixAttention(SelfAttention):
    """Looks at a source and at what was written after it, with one softmax over both.

    Who records it sees the share of the source: rows sum to one less what goes to the target.
    """

    is_self = False

    def forward(
        self,
        states: Tensor,
        heads: Heads,
        *,
        mask: Tensor | None = None,
        is_causal: bool = False,
        places: Places | None = None,
        num_source: int | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Let states (B, Q, D) ask the prepared heads, of which the first are the source's.

        Args:
            states: (B, Q, D).
            heads: Keys and values of source and target, (B, H, K, E).
            mask: (B, Q, K) or broadcastable, bool, True = may attend.
            is_causal: Whether each query sees the keys up to its own place only.
            places: Where queries and keys stand.
            num_source: How many keys are the source's; all if not given.

        Returns:
            The answer (B, Q, D), and the weights on the source (B, H, Q, S) while somebody records.
        """
        answer, weights = super().forward(
            states, heads, mask=mask, is_causal=is_causal, places=places
        )
        return answer, weights if weights is None else weights[..., :num_source]

    if TYPE_CHECKING:
        __call__ = forward


class PrefixBlock(TransformerBlock):
    """A block that reads a source once, and then goes on from it."""

    attention_type = PrefixAttention
    self_attention: PrefixAttention

    def read(self, states: Tensor) -> tuple[Tensor, Heads]:
        """Let each position of the source see those before it.

        Args:
            states: (B, S, D); padding stands at the end, where no real position sees it.

        Returns:
            The new states, and keys and values of the source.
        """
        heads = self.self_attention.nothing(states.shape[0])

        def look(inputs: Tensor) -> Tensor:
            nonlocal heads
            heads = self.self_attention.extend(inputs)
            # Past the hooks of a call: who records looks at the target's gaze, not at this.
            return self.self_attention.forward(inputs, heads, is_causal=True)[0]

        return self.think(self.self_residual(states, look)), heads

    def write(
        self, states: Tensor, past: Heads, source: Heads, *, mask: Tensor
    ) -> tuple[Tensor, Heads]:
        """Let each position of the target see the source and what came before.

        Args:
            states: (B·W, T, D).
            past: Keys and values of the target before, (B·W, H, L, E).
            source: Keys and values of the source, (B·W, H, S, E).
            mask: (B·W, S), True = a real position of the source.

        Returns:
            The new states, and keys and values of the target up to here.
        """
        heads = past

        def look(inputs: Tensor) -> Tensor:
            nonlocal heads
            heads = self.self_attention.extend(inputs, past)
            num_queries, num_keys = inputs.shape[1], heads[0].shape[2]
            own = torch.arange(num_keys, device=inputs.device)
            across = torch.arange(mask.shape[1], device=inputs.device)
            order = causal(num_queries, num_keys, inputs.device)
            both = [mask[:, None].expand(-1, num_queries, -1), order.expand(len(inputs), -1, -1)]
            return self.self_attention(
                inputs,
                _join(source, heads),
                mask=torch.cat(both, dim=2),  # (B·W, Q, K)
                places=(own[num_keys - num_queries :], torch.cat([across, own])),
                num_source=mask.shape[1],
            )[0]

        return self.think(self.self_residual(states, look)), heads


class PrefixBlocks(TransformerBlocks):
    """Blocks in their order."""

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[PrefixBlock]: ...


class PrefixDecoder(Decoder):
    """One stack reads source and target, the start token between them (Liu et al. 2018).

    The places of the target begin at 0 again, and a segment embedding tells the two apart: so
    nothing depends on the padding of a batch, and a word and its translation are close.
    """

    def __init__(self, config: PrefixDecoderConfig, vocab_size: int, *, memory_dim: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, config.dim)
        self.segment_embedding = nn.Embedding(2, config.dim)
        self.source_map = (
            nn.Identity() if memory_dim == config.dim else nn.Linear(memory_dim, config.dim)
        )
        # Seen from the target, the source has places before and after.
        self.positions = build_positions(config, is_causal=False)
        self.blocks = PrefixBlocks(
            PrefixBlock(config, self.positions) for _ in range(config.num_layers)
        )
        self.norm = build_final_norm(config)
        self.dropout = nn.Dropout(config.dropout)
        self.output = nn.Linear(config.dim, vocab_size)
        self.scale = config.dim**0.5
        self.source_weight = config.source_weight

    def start(self, memory: Memory, *, beams: int = 1) -> State:
        """Read the source, with `beams` hypotheses a sentence to come."""
        return self._read(memory, beams)[1]

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Read tokens (B·W, T) and return logits (B·W, T, V) and where the decoder stands now."""
        first = state.per_hypothesis[0][0].shape[2]
        states = self._place(self.embedding(tokens) * self.scale, segment=1, first=first)
        beams = len(tokens) // len(state.per_source["mask"])
        mask = repeat_rows(state.per_source["mask"], beams)  # (B·W, S)
        per_hypothesis = []
        for block, past, source in zip(
            self.blocks, state.per_hypothesis, state.per_source["source"], strict=True
        ):
            states, heads = block.write(states, past, repeat_rows(source, beams), mask=mask)
            per_hypothesis.append(heads)
        return self.output(self.norm(states)), State(state.per_source, per_hypothesis)

    def forward(self, targets: Tensor, memory: Memory) -> Output:
        """Read a whole target, token ids (B, T) from the start token on: one long step."""
        states, state = self._read(memory)
        logits, _ = self.step(targets, state)
        if not self.source_weight:
            return Output(logits)
        return Output(logits, {"source": self.source_weight * self._source_loss(states, memory)})

    if TYPE_CHECKING:
        __call__ = forward

    def _read(self, memory: Memory, beams: int = 1) -> tuple[Tensor, State]:
        """Return the last states of the source (B, S, D), and where the target starts."""
        states = self._place(self.source_map(memory.states), segment=0)
        source = []
        for block in self.blocks:
            states, heads = block.read(states)
            source.append(heads)
        rows = len(states) * beams
        nothing = [block.self_attention.nothing(rows) for block in self.blocks]
        return states, State(
            per_source={"source": source, "mask": memory.mask}, per_hypothesis=nothing
        )

    def _place(self, embedded: Tensor, *, segment: int, first: int = 0) -> Tensor:
        which = self.segment_embedding.weight[segment]
        placed: Tensor = self.dropout(place(embedded + which, self.positions, first=first))
        return placed

    def _source_loss(self, states: Tensor, memory: Memory) -> Tensor:
        """Return the mean cross entropy of the source's tokens but the first."""
        assert memory.tokens is not None
        is_real = memory.mask[:, 1:]
        logits = self.output(self.norm(states[:, :-1])).float()
        labels = memory.tokens[:, 1:].masked_fill(~is_real, -100)
        total = cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
        return total / is_real.sum().clamp(min=1)


def _join(source: Heads, target: Heads) -> Heads:
    """Put the keys and values of source and target side by side."""
    keys, values = (torch.cat(pair, dim=2) for pair in zip(source, target, strict=True))
    return keys, values
