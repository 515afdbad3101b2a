"""Benchmark of decoding: the search of this package against other libraries, in turns."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from regard.bench.decode.batch_mates import MAX_MARGIN, BatchMates, find_changed
from regard.bench.decode.contender import (
    Entry,
    build_contender,
    list_entries,
    load_run,
)
from regard.bench.decode.peers.table import PEERS
from regard.bench.decode.settings import DecodeSettings
from regard.bench.decode.turns import DecodeMeasurement, Turns, Work
from regard.bench.entries import OURS
from regard.bench.memory import grow_process, status_bytes
from regard.bench.train import exact_float32
from regard.core.errors import DataError
from regard.core.progress import show_message, without_progress
from regard.data.example import Example
from regard.metrics.text.bleu import bleu
from regard.runs.evaluate import read_test_data
from regard.runs.folder import read_test_set
from regard.runs.provenance import describe_provenance
from regard.runs.saved.config import read_config
from regard.tasks.generation.task import Predictor

NUM_ALONE = 100
"""Maximum number of sentences that are decoded one at a time, spread evenly over the test set."""

LATENCY_BEAMS = 5
"""Number of beams for the latency."""


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """Results of one contender with one number of beams."""

    beams: int
    """Number of beams; 1 is greedy search."""
    sentences_per_second: float
    """Sentences per second, from text to text, in the fastest turn."""
    tokens_per_second: float
    """Target tokens per second with end tokens, in the fastest turn."""
    turns: tuple[float, ...]
    """Seconds of every turn."""
    bleu: float
    """BLEU of the outputs."""
    equal: float
    """Share of outputs that are equal to those of the first entry."""
    ratio: float | None = None
    """Sentences per second divided by those of the fastest peer of the same precision."""


@dataclass(frozen=True, kw_only=True)
class DecodeResult:
    """Results of one contender in one precision."""

    contender: str
    """`regard`, or the name of a peer."""
    precision: str
    """fp32, bf16, int8, or `auto (bf16)`: chosen for `auto`."""
    used: str = ""
    """fp32, bf16 or int8."""
    error: str = ""
    """Reason why there are no measurements."""
    searches: list[SearchResult] = field(default_factory=list)
    """One per number of beams."""
    latency_p50: float | None = None
    """Median of the seconds of a sentence alone."""
    latency_p95: float | None = None
    """95th percentile of the seconds of a sentence alone."""
    peak_bytes: int | None = None
    """Peak memory; None if it was not measured."""


def bench_decode(settings: DecodeSettings) -> dict[str, Any]:
    """Measure all contenders; return the results with their provenance as plain JSON."""
    task = load_run(settings)
    recipe = read_config(settings.run)["about"].get("recipe", "")
    examples = read_examples(task, settings)
    work = _plan(examples, settings)
    entries = list_entries(settings, task)
    builders = {entry: partial(build_contender, entry, task, settings) for entry in entries}
    with exact_float32(), show_message("Decoding in turns"), without_progress():
        turns = Turns(builders, work, device=settings.device)
        measurements = turns.run(_allocates_with_torch)
        results = [to_result(entry, measurements[entry], examples) for entry in entries]
        results = _with_equal(results, list(measurements.values()))
        mates = (
            _check_batch_mates(task, examples, settings, entries=entries)
            if settings.batch_mates
            else []
        )
    if settings.device.type == "cpu":
        with show_message("Measuring memory"):
            results = [
                one if one.error else replace(one, peak_bytes=measure_process(entry, settings))
                for entry, one in zip(entries, results, strict=True)
            ]
    return {
        **describe_provenance(settings.device),
        "device": str(settings.device),
        "peers": {name: PEERS[name].version for name in settings.peers},
        "run": settings.run.name,
        "recipe": recipe,
        "data": list(settings.data) or "test set of the run",
        "sentences": len(work.sources),
        "alone": len(work.alone),
        "latency_beams": work.latency_beams,
        "batch": settings.batch,
        "rounds": settings.rounds,
        "results": [asdict(one) for one in with_ratios(results)],
        "batch_mates": [asdict(one) for one in mates],
        "max_margin": MAX_MARGIN,
    }


def read_examples(task: Predictor, settings: DecodeSettings) -> list[Example]:
    """Return the test set of the run or of the data, without empty sources."""
    if settings.data:
        examples = read_test_data(task, settings.data)
    else:
        examples = read_test_set(settings.run)
    examples = [one for one in examples if isinstance(one.source, str) and one.source.strip()]
    if not examples:
        raise DataError("The test data must have a source of text, but has none.")
    return spread(examples, settings.sentences)


def spread(items: Sequence[Any], num: int) -> list[Any]:
    """Return at most `num` items, spread evenly."""
    step = max(1.0, len(items) / num)
    return [items[int(index * step)] for index in range(min(num, len(items)))]


def _plan(examples: list[Example], settings: DecodeSettings) -> Work:
    sources = [str(one.source) for one in examples]
    return Work(
        sources=sources,
        alone=spread(sources, NUM_ALONE),
        beams=settings.beams,
        latency_beams=LATENCY_BEAMS if LATENCY_BEAMS in settings.beams else max(settings.beams),
        # The longest ones need the most memory.
        warm_up=sorted(sources, key=len)[-settings.batch :],
        rounds=settings.rounds,
    )


def _allocates_with_torch(entry: Entry) -> bool:
    return entry.contender == OURS or PEERS[entry.contender].allocates_with_torch


def to_result(
    entry: Entry, measured: DecodeMeasurement, examples: Sequence[Example]
) -> DecodeResult:
    """Return the results of an entry from its measurements; outputs are scored here."""
    if measured.error:
        return DecodeResult(
            contender=entry.contender,
            precision=entry.label,
            used=entry.precision,
            error=measured.error,
        )
    references = [[one.target, *one.references] for one in examples]
    searches = []
    for beams, turns in measured.turns.items():
        predictions = measured.predictions[beams]
        num_tokens = sum(len(one.tokens) for one in predictions)
        searches.append(
            SearchResult(
                beams=beams,
                sentences_per_second=len(predictions) / min(turns),
                tokens_per_second=num_tokens / min(turns),
                turns=tuple(turns),
                bleu=bleu([one.text for one in predictions], references).value,
                equal=0.0,
            )
        )
    p50, p95 = np.percentile(measured.latencies, [50, 95]).tolist()
    return DecodeResult(
        contender=entry.contender,
        precision=entry.label,
        used=entry.precision,
        searches=searches,
        latency_p50=p50,
        latency_p95=p95,
        peak_bytes=measured.peak_bytes,
    )


def _with_equal(
    results: list[DecodeResult], measurements: list[DecodeMeasurement]
) -> list[DecodeResult]:
    """Add the share of outputs that are equal to those of the first entry without an error."""
    first = next((one for one in measurements if not one.error), None)
    if first is None:
        return results
    changed = []
    for result, measured in zip(results, measurements, strict=True):
        searches = []
        for one in result.searches:
            pairs = zip(first.predictions[one.beams], measured.predictions[one.beams], strict=True)
            same = [ours.text == theirs.text for ours, theirs in pairs]
            searches.append(replace(one, equal=sum(same) / len(same)))
        changed.append(replace(result, searches=searches))
    return changed


def with_ratios(results: list[DecodeResult]) -> list[DecodeResult]:
    """Add the ratios to the fastest peer of the same precision and number of beams."""
    best: dict[tuple[str, int], float] = {}
    for result in results:
        for one in result.searches if result.contender != OURS else ():
            key = (result.used or result.precision, one.beams)
            best[key] = max(one.sentences_per_second, best.get(key, 0.0))

    def with_ratio(precision: str, one: SearchResult) -> SearchResult:
        other = best.get((precision, one.beams))
        return replace(one, ratio=one.sentences_per_second / other) if other else one

    return [
        replace(
            one,
            searches=[with_ratio(one.used or one.precision, search) for search in one.searches],
        )
        for one in results
    ]


def _check_batch_mates(
    task: Predictor,
    examples: Sequence[Example],
    settings: DecodeSettings,
    *,
    entries: Sequence[Entry],
) -> list[BatchMates]:
    """Check the entries of this package."""
    sources = spread([str(one.source) for one in examples], settings.batch_mates)
    reports = []
    for entry in entries:
        if entry.contender != OURS:
            continue
        contender = build_contender(entry, task, settings)
        for beams in settings.beams:
            changed = find_changed(
                contender, sources, beams=beams, length_penalty=task.search.length_penalty
            )
            margins = [one.margin for one in changed]
            reports.append(
                BatchMates(
                    contender=entry.contender,
                    precision=entry.label,
                    beams=beams,
                    sentences=len(sources),
                    max_margin=max(margins, default=0.0),
                    num_beyond=sum(margin > MAX_MARGIN for margin in margins),
                    changed=[{**asdict(one), "margin": one.margin} for one in changed],
                )
            )
    return reports


def measure_process(entry: Entry, settings: DecodeSettings) -> int | None:
    """Return by how many bytes a new process grows at most when an entry decodes two batches."""
    return grow_process(_grow, entry, settings, name=f"{entry.contender} {entry.precision}")


def _grow(entry: Entry, settings: DecodeSettings, num_threads: int) -> int:
    torch.set_num_threads(num_threads)
    with without_progress():
        before = status_bytes("VmRSS")
        task = load_run(settings)
        work = _plan(read_examples(task, settings), settings)
        contender = build_contender(entry, task, settings)
        for _ in range(2):
            contender.decode(work.warm_up, max(settings.beams))
    return max(0, status_bytes("VmHWM") - before)
