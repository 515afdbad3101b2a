"""Table of peers: other implementations by name, and the models that each of them has."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import torch
from torch import nn

from regard.bench.peers.convolutional import PlainConvolutional
from regard.bench.peers.loop import PeerContender, PeerLoss
from regard.bench.peers.marian import Marian
from regard.bench.peers.recurrent import PlainRecurrent
from regard.bench.peers.transformer import PlainTransformer
from regard.bench.sizes import RandomBatches
from regard.core.errors import RegardError
from regard.models.build import ModelConfig
from regard.models.encoders.convolutional import ConvolutionEncoderConfig
from regard.models.encoders.rnn import RnnEncoderConfig
from regard.models.encoders.transformer import TransformerEncoderConfig
from regard.tasks.generation.recipe import Recipe


@dataclass(frozen=True)
class Peer:
    """Another implementation."""

    package: str
    """Package that must be installed."""
    models: dict[type, Callable[[ModelConfig, int, int], nn.Module]]
    """Functions (settings, vocabulary size, padding token) → model, by settings of the encoder."""
    compiled: tuple[type, ...] = ()
    """Settings of encoders whose models are compiled."""

    @property
    def version(self) -> str:
        """Version of the package; an empty string if it is not installed."""
        try:
            return version(self.package)
        except PackageNotFoundError:
            return ""


PEERS: dict[str, Peer] = {
    "hf": Peer("transformers", {TransformerEncoderConfig: Marian}),
    "torch": Peer(
        "torch",
        {
            TransformerEncoderConfig: PlainTransformer,
            RnnEncoderConfig: PlainRecurrent,
            ConvolutionEncoderConfig: PlainConvolutional,
        },
        compiled=(TransformerEncoderConfig,),
    ),
}
"""Peers by name."""


def build_peer(
    peer: Peer,
    recipe: Recipe,
    batches: RandomBatches,
    *,
    vocab_size: int,
    device: torch.device,
    can_compile: bool = True,
) -> PeerContender:
    """Build the model of a peer with the sizes of a recipe, and its training loop.

    Args:
        peer: A row of `PEERS`.
        recipe: The recipe of this package's model.
        batches: The batches.
        vocab_size: Size of the joint vocabulary.
        device: The device.
        can_compile: Whether models that the table names are compiled.
    """
    kind = type(recipe.model.encoder)
    if not peer.version:
        raise RegardError(f"`{peer.package}` is not installed.")
    if kind not in peer.models:
        raise RegardError(
            f"`{peer.package}` has no encoder–decoder of the kind '{recipe.model.encoder.kind}'."
        )
    model = peer.models[kind](recipe.model, vocab_size, batches.pad)
    loss = PeerLoss(model, recipe.train, device=device, pad=batches.pad)
    return PeerContender(
        loss,
        recipe.train,
        batches=batches.epoch(0),
        device=device,
        is_compiled=can_compile and kind in peer.compiled,
    )
