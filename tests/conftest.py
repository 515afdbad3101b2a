import os
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor

from regard.models.build import ModelConfig, build_model
from regard.models.decoders import DECODERS
from regard.models.encoders import RnnEncoderConfig

# Several threads cost more than they bring at these sizes, and their sums vary in the last digit.
torch.set_num_threads(1)

VOCAB_SIZE = 11
PAD, START, END = 0, 2, 3

TINY_ENCODERS = {
    f"{cell}-{'both' if is_bidirectional else 'one'}": RnnEncoderConfig(
        cell=cell, is_bidirectional=is_bidirectional, embedding_dim=4, dim=3, num_layers=2
    )
    for cell in ("vanilla", "gru", "lstm")
    for is_bidirectional in (False, True)
}
TINY_CONFIGS = {
    f"{name}-{decoder.kind}-{cell}": ModelConfig(
        encoder=encoder, decoder=decoder(cell=cell, embedding_dim=5, dim=6, num_layers=2)
    )
    for name, encoder in TINY_ENCODERS.items()
    for decoder in DECODERS
    for cell in ("vanilla", "gru", "lstm")
}


@dataclass(frozen=True)
class Sentences:
    source: Tensor
    mask: Tensor
    targets: Tensor

    @property
    def lengths(self):
        return self.mask.sum(1).tolist()

    def alone(self, row):
        length = self.lengths[row]
        return self.source[row : row + 1, :length], self.mask[row : row + 1, :length]


@pytest.fixture
def sentences():
    """Three sources of 7, 3 and 5 tokens, and three targets of 6."""
    generator = torch.Generator().manual_seed(5)
    source = torch.randint(4, VOCAB_SIZE, (3, 7), generator=generator)
    mask = torch.arange(7) < torch.tensor([7, 3, 5])[:, None]
    targets = torch.randint(4, VOCAB_SIZE, (3, 6), generator=generator)
    targets[:, 0] = START
    return Sentences(source.masked_fill(~mask, PAD), mask, targets)


@pytest.fixture(params=TINY_CONFIGS.values(), ids=TINY_CONFIGS)
def tiny_config(request):
    """Every encoder cell and direction with every decoder and its cells."""
    return request.param


@pytest.fixture
def build():
    """Settings to a tiny model, always with the same weights."""

    def build_seeded(config, seed=0):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = build_model(config, source_vocab_size=VOCAB_SIZE, target_vocab_size=VOCAB_SIZE)
        # Fresh weights give nearly equal logits; larger ones make mistakes visible.
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(1.5)
        return model.eval()

    return build_seeded


@pytest.fixture(scope="session")
def data_folder():
    """The folder with data sets that do not ship with the package."""
    if "REGARD_DATA" not in os.environ:
        pytest.skip("REGARD_DATA is not set: the shared data is absent")
    return Path(os.environ["REGARD_DATA"])
