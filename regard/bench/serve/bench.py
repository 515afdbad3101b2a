"""Benchmark of the server: latency and sentences per second, with and without batches."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from regard.bench.serve.load import Address, Load, run_load
from regard.bench.serve.process import ServerProcess
from regard.core.config import at_least
from regard.core.device import find_device
from regard.core.errors import ConfigError
from regard.core.progress import show_message
from regard.runs.folder import load as load_run
from regard.runs.folder import read_test_set
from regard.runs.provenance import describe_provenance
from regard.tasks.base import Generates
from regard.tasks.reading import find_modality

WARM_UP = 2.0
"""Seconds of load before the measurement."""


@dataclass(frozen=True, kw_only=True)
class ServeSettings:
    """Settings of a benchmark of the server; messages name the options of the command."""

    run: Path
    """The run folder."""
    connections: Sequence[int] = (1, 64)
    """Numbers of connections, each with one request at a time."""
    batches: Sequence[int] = (1, 64)
    """Maximum numbers of sources in a batch; 1 = no batching."""
    seconds: float = 10.0
    """Time of each measurement."""
    sentences: int = 1000
    """Maximum number of different sentences."""
    device: str = "auto"
    """Device of the server."""

    def __post_init__(self) -> None:
        for option, values in (("--connections", self.connections), ("--batch", self.batches)):
            if not values:
                raise ConfigError(f"`{option}` must name at least one number, but is empty.")
            for value in values:
                at_least(option, value, 1)
        at_least("--seconds", self.seconds, 0.1)
        at_least("--sentences", self.sentences, 1)


@dataclass(frozen=True, kw_only=True)
class ServeResult:
    """Results with one size of batches and one number of connections."""

    batch: int
    """Maximum number of sources in a batch."""
    connections: int
    """Number of connections."""
    sentences_per_second: float
    """Sentences that were predicted per second."""
    latency_p50: float | None
    """Median of the seconds of a request; None without replies."""
    latency_p95: float | None
    """95th percentile of the seconds of a request."""
    replies: int
    """Requests that were answered with a prediction."""
    busy: int
    """Requests that were refused since too many were waiting."""
    errors: dict[int, int]
    """Other replies by their status."""
    lost: int
    """Requests without a reply."""
    swapped: int
    """Replies with the source of another request."""
    different: int
    """Predictions that are not those of `regard predict`."""


def bench_serve(settings: ServeSettings) -> dict[str, Any]:
    """Measure a server of a run, for each size of batches and number of connections."""
    expected = predict_expected(settings)
    results = []
    for batch in settings.batches:
        arguments = [str(settings.run), "--device", settings.device, "--max-batch", str(batch)]
        arguments += ["--max-queue", str(max(1_024, *settings.connections))]
        with ServerProcess(arguments) as server:
            address = Address.of(server.url)
            for connections in settings.connections:
                send = partial(run_load, address, expected, connections=connections)
                with show_message(f"Batches of {batch}, {connections} connections"):
                    asyncio.run(send(seconds=WARM_UP))
                    load = asyncio.run(send(seconds=settings.seconds))
                results.append(_summarise(load, batch=batch, connections=connections))
    return {
        **describe_provenance(find_device(settings.device)),
        "run": settings.run.name,
        "seconds": settings.seconds,
        "sentences": len(expected),
        "results": [asdict(result) for result in results],
    }


def predict_expected(settings: ServeSettings) -> dict[str, str]:
    """Return the predictions of the sentences of the test set, from this process."""
    task = load_run(settings.run, settings.device)
    if not isinstance(task, Generates) or find_modality(task.recipe.data).name != "text":
        raise ConfigError(
            "`regard bench serve` needs a run that generates text from text, but this one is for "
            f"the task '{task.recipe.task}'."
        )
    texts = dict.fromkeys(str(example.source) for example in read_test_set(settings.run))
    sources = [text for text in texts if text.strip()][: settings.sentences]
    return dict(zip(sources, task.translate(sources), strict=True))


def _summarise(load: Load, *, batch: int, connections: int) -> ServeResult:
    times = np.quantile(load.latencies, (0.5, 0.95)).tolist() if load.latencies else (None, None)
    return ServeResult(
        batch=batch,
        connections=connections,
        sentences_per_second=len(load.latencies) / load.elapsed,
        latency_p50=times[0],
        latency_p95=times[1],
        replies=load.statuses[200],
        busy=load.statuses[429],
        errors={status: num for status, num in load.statuses.items() if status not in (200, 429)},
        lost=load.num_lost + load.num_refused,
        swapped=len(load.swapped),
        different=len(load.different),
    )
