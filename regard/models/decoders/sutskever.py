"""Decoder of Sutskever et al. 2014: the source is encoded in the initial state only."""

from dataclasses import dataclass
from typing import Literal

from regard.models.decoders.recurrent import FinalStateBridge, RecurrentDecoder
from regard.models.recurrent import RecurrentConfig


@dataclass(frozen=True, kw_only=True)
class SutskeverDecoderConfig(RecurrentConfig):
    """Hyperparameters of the decoder."""

    kind: Literal["sutskever"] = "sutskever"
    """Kind of decoder."""


class SutskeverDecoder(RecurrentDecoder):
    """Recurrent language model whose initial state is the final state of the encoder."""

    def __init__(self, config: SutskeverDecoderConfig, vocab_size: int, *, memory_dim: int) -> None:
        super().__init__(config, vocab_size, readout_dim=config.dim)
        self.bridge = FinalStateBridge(config, memory_dim)
