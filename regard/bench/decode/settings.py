"""Settings of a benchmark of decoding."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import torch

from regard.bench.decode.peers.table import PEERS
from regard.core.config import at_least
from regard.core.errors import ConfigError
from regard.core.tables import pick
from regard.search.settings import SearchConfig

PRECISIONS = ("fp32", "bf16", "int8", "auto")
"""Precisions of the search."""


@dataclass(frozen=True, kw_only=True)
class DecodeSettings:
    """Settings of a benchmark of decoding; messages name the options of the command."""

    run: Path
    """The run folder."""
    device: torch.device
    """The device."""
    data: tuple[str, ...] = ()
    """Test data; the test set of the run if empty."""
    peers: Sequence[str] = tuple(PEERS)
    """Names of peers."""
    beams: Sequence[int] = (1, 5)
    """Numbers of beams."""
    batch: int = 64
    """Maximum number of sentences in a batch."""
    sentences: int = 1000
    """Maximum number of sentences."""
    precisions: Sequence[str] = ("fp32",)
    """Precisions of this package; peers have those of them that they support."""
    rounds: int = 3
    """Turns of each contender, of which the fastest counts."""
    batch_mates: int = 0
    """Number of sentences that are decoded both in batches and one at a time; 0 = none."""

    def __post_init__(self) -> None:
        for option, value in (
            ("--batch", self.batch), ("--sentences", self.sentences), ("--rounds", self.rounds),
            *(("--beam", beams) for beams in self.beams),
        ):  # fmt: skip
            at_least(option, value, 1)
        at_least("--batch-mates", self.batch_mates, 0)
        for option, values in (("--beam", self.beams), ("--precision", self.precisions)):
            if not values:
                raise ConfigError(f"`{option}` must name at least one value, but is empty.")
        for name in self.peers:
            pick(PEERS, name, "--peer")
        for name in self.precisions:
            pick(dict.fromkeys(PRECISIONS), name, "--precision")

    def search_overrides(self, precision: str) -> list[str]:
        """Return the overrides of the search for a precision of this package.

        Raise `ConfigError` if the search has one precision only.
        """
        if any(one.name == "precision" for one in fields(SearchConfig)):
            return [f"search.precision={precision}"]
        if precision != "fp32":
            raise ConfigError(f"The search computes in fp32 only, not in {precision}.")
        return []
