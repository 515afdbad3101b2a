"""Settings of a benchmark of training."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from regard.bench.peers.table import PEERS
from regard.bench.sizes import find_size
from regard.core.config import at_least
from regard.core.device import Precision, has_native_bf16
from regard.core.errors import ConfigError
from regard.core.tables import pick


@dataclass(frozen=True, kw_only=True)
class BenchSettings:
    """Settings of a benchmark of training; messages name the options of the command."""

    device: torch.device
    """The device."""
    sizes: Sequence[str] = ()
    """Names of sizes; `small` on a CPU and `base` elsewhere if empty."""
    peers: Sequence[str] = tuple(PEERS)
    """Names of peers."""
    precision: Precision = "auto"
    """Precision of all contenders; `auto` is fp32 and, where the hardware has it, bf16."""
    rounds: int = 5
    """Turns of each contender, of which the fastest counts."""
    seconds: float = 3.0
    """Approximate time of each turn."""
    seed: int = 1
    """Seed of weights, token ids and dropout."""
    is_padded: bool = False
    """Whether sentences of a batch differ in length."""
    can_compile: bool = True
    """Whether models are compiled: peers where possible, ours where training does so."""

    def __post_init__(self) -> None:
        at_least("--rounds", self.rounds, 1)
        if not self.seconds > 0:
            raise ConfigError(f"`--seconds` must be above 0, but is {self.seconds:g}.")
        for name in self.sizes:
            find_size(name)
        for name in self.peers:
            pick(PEERS, name, "--peer")

    @property
    def size_names(self) -> Sequence[str]:
        """Names of the sizes to measure."""
        return self.sizes or ("small" if self.device.type == "cpu" else "base",)

    @property
    def precisions(self) -> list[Precision]:
        """Precisions to measure."""
        if self.precision != "auto":
            return [self.precision]
        return ["fp32", "bf16"] if has_native_bf16(self.device) else ["fp32"]
