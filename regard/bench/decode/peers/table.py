"""Table of the peers of decoding: packages and precisions by name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from regard.bench.decode.peers.huggingface import HuggingFacePredictor
from regard.bench.decode.peers.loop import LoopPredictor
from regard.core.errors import RegardError
from regard.interop.batch_search import BatchSearchPredictor
from regard.interop.ctranslate2.engine import CTranslate2Predictor
from regard.tasks.generation.task import Predictor

COMPUTE_TYPES = {"fp32": "float32", "bf16": "bfloat16", "int8": "int8"}
"""Compute types of CTranslate2 by precision."""


@dataclass(frozen=True)
class Peer:
    """Another implementation of the search."""

    package: str
    """Package that must be installed."""
    precisions: tuple[str, ...]
    """Precisions that it supports."""
    always: tuple[str, ...]
    """Precisions that are measured in any case."""
    build: Callable[[Predictor, Path, str], BatchSearchPredictor]
    """Function of the task, the run folder and the precision."""
    allocates_with_torch: bool = True
    """Whether torch counts the memory that it allocates on a GPU."""

    @property
    def version(self) -> str:
        """Version of the package; an empty string if it is not installed."""
        try:
            return version(self.package)
        except PackageNotFoundError:
            return ""

    def list_precisions(self, chosen: Sequence[str]) -> list[str]:
        """Return the precisions to measure if `chosen` are those of this package."""
        wanted = {*self.always, *chosen}
        return [one for one in self.precisions if one in wanted]

    def load(self, task: Predictor, run: Path, precision: str) -> BatchSearchPredictor:
        """Return the predictor; raise `RegardError` if there is no package or no such model."""
        if not self.version:
            raise RegardError(f"`{self.package}` is not installed.")
        return self.build(task, run, precision)


PEERS: dict[str, Peer] = {
    "hf": Peer(
        "transformers",
        ("fp32", "bf16"),
        ("fp32",),
        lambda task, run, precision: HuggingFacePredictor.of(task, run, precision=precision),
    ),
    "ctranslate2": Peer(
        "ctranslate2",
        ("fp32", "bf16", "int8"),
        ("fp32", "int8"),
        lambda task, run, precision: CTranslate2Predictor.of(
            task, compute_type=COMPUTE_TYPES[precision]
        ),
        allocates_with_torch=False,
    ),
    "loop": Peer(
        "torch", ("fp32",), ("fp32",), lambda task, run, precision: LoopPredictor.of(task)
    ),
}
"""Peers by name."""
