"""Entries of a benchmark of training: one contender at one size and precision."""

from dataclasses import dataclass

from regard.bench.contender import Contender, TrainerContender
from regard.bench.peers.table import PEERS, build_peer
from regard.bench.settings import BenchSettings
from regard.bench.sizes import RandomBatches, build_task, find_size
from regard.core.device import Precision, seed_everything

OURS = "regard"
"""Name of this package among the contenders."""


@dataclass(frozen=True)
class Entry:
    """A contender at one size and precision."""

    size: str
    """Name of the size."""
    contender: str
    """`regard`, or the name of a peer."""
    precision: Precision
    """fp32 or bf16."""


def list_entries(size: str, settings: BenchSettings) -> list[Entry]:
    """Return the entries of a size: this package first, then the peers, by precision."""
    return [
        Entry(size, contender, precision)
        for precision in settings.precisions
        for contender in (OURS, *settings.peers)
    ]


def build_batches(size: str, settings: BenchSettings) -> RandomBatches:
    """Build the batches that all contenders of a size train on."""
    return RandomBatches(
        find_size(size),
        seed=settings.seed,
        is_padded=settings.is_padded,
        is_pinned=settings.device.type == "cuda",
    )


def build_contender(entry: Entry, batches: RandomBatches, settings: BenchSettings) -> Contender:
    """Build the model and the training loop of an entry."""
    size = find_size(entry.size)
    recipe = size.load(entry.precision, seed=settings.seed, can_compile=settings.can_compile)
    if entry.contender == OURS:
        return TrainerContender(build_task(size, recipe, device=settings.device), batches)
    seed_everything(settings.seed)
    return build_peer(
        PEERS[entry.contender],
        recipe,
        batches,
        vocab_size=size.vocab_size,
        device=settings.device,
        can_compile=settings.can_compile,
    )
