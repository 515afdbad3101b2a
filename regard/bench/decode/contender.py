"""Contenders of a benchmark of decoding: one predictor in one precision."""

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from regard.bench.contender import synchronize
from regard.bench.decode.peers.table import PEERS
from regard.bench.decode.settings import DecodeSettings
from regard.bench.entries import OURS
from regard.core.errors import ConfigError
from regard.runs.folder import load
from regard.search.settings import SearchConfig, override_search
from regard.tasks.decoding.preparation import resolve_precision
from regard.tasks.generation.task import Predictor
from regard.tasks.prediction import Prediction

ANY_LENGTH = 1_000_000
"""Maximum number of positions in a batch: the number of sentences alone limits batches."""


@dataclass(frozen=True)
class Entry:
    """A contender in one precision."""

    contender: str
    """`regard`, or the name of a peer."""
    precision: str
    """fp32, bf16 or int8."""
    is_auto: bool = False
    """Whether the precision was chosen for `auto`."""

    @property
    def label(self) -> str:
        """The precision in results, such as `auto (bf16)`."""
        return f"auto ({self.precision})" if self.is_auto else self.precision


def list_entries(settings: DecodeSettings, task: Predictor) -> list[Entry]:
    """Return the entries of a benchmark: this package first, then the peers."""
    entries = []
    for name in settings.precisions:
        given = override_search(task.search, settings.search_overrides(name)).precision
        entries.append(Entry(OURS, resolve_precision(task, given), is_auto=given == "auto"))
    chosen = [entry.precision for entry in entries]
    return entries + [
        Entry(name, precision)
        for name in settings.peers
        for precision in PEERS[name].list_precisions(chosen)
    ]


class DecodeContender:
    """A predictor with the searches of its precision."""

    def __init__(self, predictor: Predictor, search: SearchConfig) -> None:
        self._predictor, self._search = predictor, search

    def decode(self, sources: Sequence[str], beams: int) -> list[Prediction]:
        """Return the best prediction of each source."""
        search = replace(self._search, beams=beams)
        return [best[0] for best in self._predictor.predict(sources, search=search)]

    def measure(self, sources: Sequence[str], beams: int) -> tuple[float, list[Prediction]]:
        """Return the seconds until all sources are decoded, and their predictions."""
        device = self._predictor.device
        synchronize(device)
        started = time.perf_counter()
        predictions = self.decode(sources, beams)
        synchronize(device)
        return time.perf_counter() - started, predictions


def load_run(settings: DecodeSettings) -> Predictor:
    """Load the run, with batches of `batch` sentences."""
    task = load(settings.run, str(settings.device))
    if not isinstance(task, Predictor) or not task.reads_text:
        raise ConfigError(
            "`regard bench decode` needs a run of an encoder–decoder from text to text, but the "
            f"task of {settings.run} is '{task.recipe.task}'."
        )
    config = replace(task.recipe.data.batch, max_sentences=settings.batch, max_tokens=ANY_LENGTH)
    changed = copy.copy(task)
    changed.recipe = replace(task.recipe, data=replace(task.recipe.data, batch=config))
    return changed


def build_contender(entry: Entry, task: Predictor, settings: DecodeSettings) -> DecodeContender:
    """Build the predictor of an entry; raise `RegardError` if there is none."""
    if entry.contender == OURS:
        overrides = settings.search_overrides(entry.precision)
        return DecodeContender(task, override_search(task.search, overrides))
    predictor = PEERS[entry.contender].load(task, settings.run, entry.precision)
    return DecodeContender(predictor, task.search)
