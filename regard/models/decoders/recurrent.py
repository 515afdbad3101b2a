"""Base classes of recurrent decoders: hyperparameters, initial states, step loop, readouts."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from regard.attention.scores import SCORES, Score, ScoreKind
from regard.attention.spans import AttentionOutput, GlobalAttention
from regard.core.config import Positive
from regard.core.dropout import Dropout
from regard.core.errors import ConfigError
from regard.core.module import Embedding, Linear, Module
from regard.core.tables import pick
from regard.models.interfaces import Decoder, LayerStates, Memory, State, by_sentence, repeat_rows
from regard.models.recurrent import Recurrence, RecurrentConfig, num_tensors

StartKind = Literal["tanh", "copy", "dense"]
ReadoutKind = Literal["maxout", "linear"]


@dataclass(frozen=True, kw_only=True)
class ContextInputConfig(RecurrentConfig):
    """Hyperparameters of recurrent decoders whose input is [y; c], embedding and context."""

    start: StartKind = "tanh"
    """Initial state s_0 from the fixed context c: tanh(W c); a copy of the final encoder states,
    which needs equal widths; or two dense layers."""
    readout: ReadoutKind = "maxout"
    """Input of the output layer: maxout of state, embedding and context, or the state alone, which
    makes the logits linear in the state."""

    @property
    def readout_dim(self) -> int:
        """Width of the readout."""
        return pick(READOUTS, self.readout, "readout").width(self)

    def build_bridge(self, memory_dim: int) -> nn.Module:
        """Build the layers that compute the initial states."""
        return pick(STARTS, self.start, "start")(self, memory_dim)

    def build_readout(self, context_dim: int) -> "Readout":
        """Build the readout of states, embeddings and contexts."""
        return pick(READOUTS, self.readout, "readout")(self, context_dim)


@dataclass(frozen=True, kw_only=True)
class AttentiveDecoderConfig(RecurrentConfig):
    """Hyperparameters of recurrent decoders with attention."""

    score: ScoreKind = "additive"
    """Score function of decoder state and source position; dot products need equal widths."""
    attention_dim: Positive = 256
    """Hidden width of the additive and concat scores."""
    max_source: int = 256
    """Maximum source length in tokens, for the location score."""

    def build_score(self, memory_dim: int) -> Score:
        """Build the score function of decoder states and source states of width `memory_dim`."""
        return pick(SCORES, self.score, "score")(
            self.dim, memory_dim, dim=self.attention_dim, max_source=self.max_source
        )


class RecurrentDecoder(Decoder):
    """Base class of recurrent decoders: embedding, recurrent stack and output layer."""

    bridge: nn.Module
    """Computes the initial state of each layer from the memory."""

    def __init__(
        self, config: RecurrentConfig, vocab_size: int, *, context_dim: int = 0, readout_dim: int
    ) -> None:
        super().__init__()
        self.embedding = Embedding(vocab_size, config.embedding_dim)
        self.recurrence = Recurrence(config, config.embedding_dim + context_dim)
        self.output = Linear(readout_dim, vocab_size)
        self.dropout = Dropout(config.dropout)

    def start(self, memory: Memory, *, beams: int = 1, max_length: int | None = None) -> State:
        """Return the state before the first token, with `beams` hypotheses per sentence."""
        per_source = self.prepare(memory)
        return State(per_source, {"layers": repeat_rows(self.bridge(memory), beams)})

    def prepare(self, memory: Memory) -> dict[str, Tensor]:
        """Compute the inputs of all steps from the memory, once per sentence."""
        return {}

    def embed(self, tokens: Tensor) -> Tensor:
        """Embed tokens (B·W, T), (B·W, T, D)."""
        return self.embedding(tokens)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Process tokens (B·W, T) with the state alone; return logits and the next state."""
        embedded = self.dropout(self.embed(tokens))  # (B·W, T, D)
        states, layers = self.recurrence(embedded, state.per_hypothesis["layers"])
        return self.output(self.dropout(states)), State(state.per_source, {"layers": layers})


class AttentiveDecoder(RecurrentDecoder):
    """Recurrent decoder with attention. The state of the attention is part of the decoder state."""

    attention: GlobalAttention

    def start(self, memory: Memory, *, beams: int = 1, max_length: int | None = None) -> State:
        """Return the state before the first token, with `beams` hypotheses per sentence."""
        state = super().start(memory, beams=beams)
        attention = self.attention.start(state.per_source, beams=beams)
        return State(state.per_source, {**state.per_hypothesis, "attention": attention})

    def prepare(self, memory: Memory) -> dict[str, Tensor]:
        """Project the memory for the attention, once per sentence."""
        return self.attention.prepare(memory.states, memory.mask)


class ContextFirstDecoder(AttentiveDecoder):
    """Recurrent decoder that attends with its last state: s_i = f(s_{i-1}, y_{i-1}, c_i)."""

    readout: "Readout"

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Process tokens (B·W, T); return logits (B·W, T, V) and the next state."""
        logits, state, _ = self.run(tokens, state)
        return logits, state

    def run(self, tokens: Tensor, state: State) -> tuple[Tensor, State, list[AttentionOutput]]:
        """Process tokens as `step` does; return the attention output of each token, too."""
        embedded = self.dropout(self.embedding(tokens))  # (B·W, T, D)
        batch = state.per_source["mask"].shape[0]
        layers, attention = state.per_hypothesis["layers"], state.per_hypothesis["attention"]
        outputs, contexts, results = [], [], []
        steps = self.recurrence.unroll(embedded)
        for position in range(tokens.shape[1]):
            hidden = layers[-1][0]  # (B·W, D)
            query = by_sentence(hidden[:, None], batch)  # (B, W, D)
            attention_state = by_sentence(attention[:, None], batch)
            attended = self.attention(query, state.per_source, attention_state)
            context = self.gate_context(attended.context.flatten(0, 1), hidden)  # (B·W, D)
            output, layers = steps.step(position, context, self.carry_over(layers))
            attention = self.attention.advance(attention, attended.weights.flatten(0, 1))
            outputs.append(output)
            contexts.append(context)
            results.append(attended)
        readout = self.read_out(torch.stack(outputs, 1), embedded, torch.stack(contexts, 1))
        per_hypothesis = {"layers": layers, "attention": attention}
        logits = self.output(self.dropout(readout))
        return logits, State(state.per_source, per_hypothesis), results

    def gate_context(self, context: Tensor, hidden: Tensor) -> Tensor:
        """Gate the context (B·W, D) by the state `hidden` (B·W, D); by default, no gate."""
        return context

    def carry_over(self, layers: LayerStates) -> LayerStates:
        """Return the states that the recurrent step continues; by default, those of last step."""
        return layers

    def read_out(self, states: Tensor, embedded: Tensor, contexts: Tensor) -> Tensor:
        """Combine states, input embeddings and contexts, (B·W, T, D) each, for the output layer."""
        readout: Tensor = self.readout(states, embedded, contexts)
        return readout


class FinalStateBridge(Module):
    """Initial decoder states from the final encoder states (Sutskever et al. 2014).

    If encoder and decoder have the same width, the states are copied; otherwise each goes through a
    linear layer with tanh. For encoders without recurrent states, the summary is used.
    """

    def __init__(self, config: RecurrentConfig, memory_dim: int) -> None:
        super().__init__()
        self.num_layers = config.num_layers
        self.num_tensors = num_tensors(config.cell)
        num_maps = 0 if memory_dim == config.dim else self.num_layers * self.num_tensors
        self.maps = nn.ModuleList(Linear(memory_dim, config.dim) for _ in range(num_maps))

    def forward(self, memory: Memory) -> LayerStates:
        """Return the initial state of each decoder layer."""
        final = memory.final if memory.final is not None else ((memory.summary,),)
        tensors = []
        for layer in range(self.num_layers):
            # If the decoder has more layers, the lower ones start from the lowest encoder state.
            source = final[max(0, len(final) - self.num_layers + layer)]
            # A GRU encoder has no c for an LSTM decoder: h is used for both.
            tensors += [source[min(part, len(source) - 1)] for part in range(self.num_tensors)]
        if self.maps:
            pairs = zip(self.maps, tensors, strict=True)
            tensors = [bridge(tensor).tanh() for bridge, tensor in pairs]
        return tuple(zip(*[iter(tensors)] * self.num_tensors, strict=True))


class SummaryBridge(Module):
    """Initial decoder states from the fixed context: s_0 = tanh(W c) (Cho et al. 2014)."""

    def __init__(self, config: RecurrentConfig, memory_dim: int) -> None:
        super().__init__()
        self.num_tensors = num_tensors(config.cell)
        self.maps = nn.ModuleList(Linear(memory_dim, config.dim) for _ in range(config.num_layers))

    def forward(self, memory: Memory) -> LayerStates:
        """Return the initial state of each decoder layer. The c of an LSTM starts at zero."""
        layers = []
        for bridge in self.maps:
            hidden = bridge(memory.summary).tanh()
            rest = (torch.zeros_like(hidden),) * (self.num_tensors - 1)
            layers.append((hidden, *rest))
        return tuple(layers)


class CopyBridge(FinalStateBridge):
    """Initial decoder states equal to the final encoder states: s_0 = h_T, without a transform."""

    def __init__(self, config: RecurrentConfig, memory_dim: int) -> None:
        if memory_dim != config.dim:
            raise ConfigError(
                f"`decoder.start` 'copy' needs `decoder.dim` equal to the width of the encoder "
                f"states ({memory_dim}), but it is {config.dim}. Set `decoder.dim` to "
                f"{memory_dim}, or `decoder.start` to 'tanh'."
            )
        super().__init__(config, memory_dim)


class DenseBridge(SummaryBridge):
    """Initial decoder states from dense layers: s_0 = tanh(W c') with c' = tanh(V c)."""

    def __init__(self, config: RecurrentConfig, memory_dim: int) -> None:
        super().__init__(config, memory_dim)
        self.hidden_map = Linear(memory_dim, memory_dim)

    def forward(self, memory: Memory) -> LayerStates:
        """Return the initial state of each decoder layer. The c of an LSTM starts at zero."""
        return super().forward(replace(memory, summary=self.hidden_map(memory.summary).tanh()))


STARTS: dict[str, Callable[[RecurrentConfig, int], nn.Module]] = {
    "tanh": SummaryBridge,
    "copy": CopyBridge,
    "dense": DenseBridge,
}
"""Initial states of decoders by name."""


class Readout(Module):
    """Base class of readouts: states, input embeddings and contexts → input of the output layer."""

    def __init__(self, config: RecurrentConfig, context_dim: int) -> None:
        super().__init__()

    @staticmethod
    def width(config: RecurrentConfig) -> int:
        """Return the width of the readout."""
        raise NotImplementedError


class StateReadout(Readout):
    """The state alone: z_t = W s_t + b."""

    @staticmethod
    def width(config: RecurrentConfig) -> int:
        """Return the width of the states."""
        return config.dim

    def forward(self, states: Tensor, embedded: Tensor, contexts: Tensor) -> Tensor:
        """Return the states (..., D)."""
        return states


class MaxoutReadout(Readout):
    """Deep output g(s, y, c): a maxout layer over state, input embedding and context.

    Cho et al. 2014, appendix; Bahdanau et al. 2015, appendix A.2.2. It uses the new state s_i, like
    later implementations; the paper writes s_{i-1}.
    """

    def __init__(self, config: RecurrentConfig, context_dim: int) -> None:
        super().__init__(config, context_dim)
        joint_dim = config.dim + config.embedding_dim + context_dim
        self.joint_map = Linear(joint_dim, 2 * config.embedding_dim)

    @staticmethod
    def width(config: RecurrentConfig) -> int:
        """Return the width of the embeddings."""
        return config.embedding_dim

    def forward(self, states: Tensor, embedded: Tensor, contexts: Tensor) -> Tensor:
        """Combine three (..., D) tensors into one readout, (..., D)."""
        joined: Tensor = self.joint_map(torch.cat([states, embedded, contexts], dim=-1))
        pairs = joined.view(*joined.shape[:-1], -1, 2)
        return pairs.amax(-1)  # (..., D)


READOUTS: dict[str, type[Readout]] = {"maxout": MaxoutReadout, "linear": StateReadout}
"""Readouts of decoders by name."""
