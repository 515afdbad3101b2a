"""Recurrent encoder–decoder with attention in plain PyTorch: `nn.GRU` and a loop over a cell."""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.models.build import ModelConfig
from regard.models.decoders.bahdanau import BahdanauDecoderConfig
from regard.models.encoders.rnn import RnnEncoderConfig


class PlainRecurrent(nn.Module):
    """Bidirectional GRU, additive attention, `nn.GRUCell` and maxout (Bahdanau et al. 2015).

    Args:
        config: Hyperparameters of a GRU encoder and decoder with one layer each.
        vocab_size: Size of the joint vocabulary.
        pad: Id of the padding token.
    """

    def __init__(self, config: ModelConfig, vocab_size: int, pad: int) -> None:
        super().__init__()
        encoder, decoder = config.encoder, config.decoder
        assert isinstance(encoder, RnnEncoderConfig)
        assert isinstance(decoder, BahdanauDecoderConfig)
        embedding_dim, memory_dim = encoder.embedding_dim, 2 * encoder.dim
        self.embedding = nn.Embedding(vocab_size, embedding_dim)
        nn.init.normal_(self.embedding.weight, std=0.05)
        self.encoder = nn.GRU(embedding_dim, encoder.dim, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(memory_dim, decoder.dim)
        self.query_map = nn.Linear(decoder.dim, decoder.attention_dim, bias=False)
        self.key_map = nn.Linear(memory_dim, decoder.attention_dim)
        self.score = nn.Linear(decoder.attention_dim, 1, bias=False)
        self.cell = nn.GRUCell(embedding_dim + memory_dim, decoder.dim)
        self.readout = nn.Linear(decoder.dim + embedding_dim + memory_dim, 2 * embedding_dim)
        self.output = nn.Linear(embedding_dim, vocab_size)
        self.output.weight = self.embedding.weight
        self.dropout = nn.Dropout(decoder.dropout)

    def forward(self, source: Tensor, targets: Tensor, mask: Tensor | None) -> Tensor:
        """Return the logits (B, T, V) of source (B, S), decoder inputs (B, T), mask (B, S)."""
        memory, final = self._encode(source, mask)
        memory = self.dropout(memory)
        keys = self.key_map(memory)  # (B, S, D)
        state = torch.tanh(self.bridge(final))  # (B, D)
        embedded = self.dropout(self.embedding(targets))  # (B, T, D)
        states, contexts = [], []
        for word in embedded.unbind(1):
            hidden = torch.tanh(self.query_map(state)[:, None] + keys)  # (B, S, D)
            scores = self.score(hidden).squeeze(-1)  # (B, S)
            if mask is not None:
                scores = scores.masked_fill(~mask, float("-inf"))
            context = torch.bmm(scores.softmax(-1)[:, None], memory)[:, 0]  # (B, D)
            state = self.cell(torch.cat([word, context], dim=-1), state)
            states.append(state)
            contexts.append(context)
        joined = torch.cat([torch.stack(states, 1), embedded, torch.stack(contexts, 1)], dim=-1)
        maxout = self.readout(joined).unflatten(-1, (-1, 2)).amax(-1)  # (B, T, D)
        logits: Tensor = self.output(self.dropout(maxout))
        return logits

    def _encode(self, source: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the states (B, S, D) and the final states of both directions (B, D)."""
        embedded = self.dropout(self.embedding(source))
        if mask is None:
            states, final = self.encoder(embedded)
        else:
            lengths = mask.sum(1).cpu()
            packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
            outputs, final = self.encoder(packed)
            states, _ = pad_packed_sequence(outputs, batch_first=True, total_length=source.shape[1])
        return states, torch.cat([final[0], final[1]], dim=-1)
