"""Encoder–decoder model."""

from dataclasses import replace

import torch
from torch import Tensor

from regard.core.module import Module
from regard.models.heads.ctc import CtcHead
from regard.models.interfaces import Decoder, Encoder, Memory, Output, State


class EncoderDecoder(Module):
    """Encoder–decoder with any encoder and any decoder.

    Args:
        encoder: The encoder.
        decoder: The decoder.
        ctc: Optional CTC head on the encoder.
    """

    def __init__(self, encoder: Encoder, decoder: Decoder, ctc: CtcHead | None = None) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.ctc = ctc

    def encode(self, source: Tensor, mask: Tensor) -> Memory:
        """Encode the source (B, S) with the mask (B, S), True = a real position."""
        return self.encoder(source, mask)

    def start(self, memory: Memory, *, beams: int = 1, max_length: int | None = None) -> State:
        """Return the decoder's state before the first token; see `Decoder.start`."""
        return self.decoder.start(memory, beams=beams, max_length=max_length)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Process tokens (B·W, T); return logits (B·W, T, V) and the next state."""
        return self.decoder.step(tokens, state)

    def forward(
        self, source: Tensor, mask: Tensor, targets: Tensor, *, teacher_forcing: float = 1.0
    ) -> Output:
        """Compute the logits of the next tokens.

        Args:
            source: (B, S) token ids.
            mask: (B, S), True = a real position.
            targets: (B, T) token ids from the start token on.
            teacher_forcing: Probability that an input of the decoder is the true token rather
                than the predicted one (scheduled sampling, Bengio et al. 2015).
        """
        memory = self.encode(source, mask)
        if teacher_forcing < 1.0:
            output = self._forward_sampled(targets, memory, teacher_forcing)
        else:
            output = self.decoder(targets, memory)
        output = replace(output, losses={**output.losses, **memory.losses})
        return output if self.ctc is None else replace(output, emissions=self.ctc(memory))

    def _forward_sampled(self, targets: Tensor, memory: Memory, ratio: float) -> Output:
        state = self.start(memory)
        tokens, step_logits = targets[:, :1], []
        for position in range(1, targets.shape[1]):
            logits, state = self.step(tokens, state)
            step_logits.append(logits)
            true = targets[:, position : position + 1]  # (B, 1)
            is_true = torch.rand(true.shape, device=true.device) < ratio
            tokens = torch.where(is_true, true, logits.argmax(-1))
        step_logits.append(self.step(tokens, state)[0])
        return Output(torch.cat(step_logits, dim=1))
