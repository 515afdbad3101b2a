"""Benchmark of training: this package against other implementations, in turns."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import torch

from regard.bench.entries import OURS, Entry, build_batches, build_contender, list_entries
from regard.bench.matrix_rate import MatrixRate
from regard.bench.memory import measure_process
from regard.bench.peers.loop import COMPILED
from regard.bench.peers.table import PEERS
from regard.bench.products import forward_products, step_flops
from regard.bench.settings import BenchSettings
from regard.bench.sizes import find_size
from regard.bench.turns import Measurement, measure_in_turns
from regard.core.device import find_dtype
from regard.core.progress import show_message
from regard.runs.provenance import describe_provenance

RATE_SECONDS = 0.02
"""Approximate time of measuring one matrix product in a round."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """Results of one contender."""

    contender: str
    """`regard`, or the name of a peer."""
    precision: str
    """fp32 or bf16."""
    error: str = ""
    """Reason why there are no measurements."""
    note: str = ""
    """Note of the contender, such as whether its model is compiled."""
    parameters: int = 0
    """Number of trained parameters."""
    tokens_per_second: float = 0.0
    """Target tokens per second without padding, in the fastest turn."""
    turns: tuple[float, ...] = ()
    """Tokens per second of every turn."""
    ratio: float | None = None
    """Throughput divided by that of the fastest peer of the same precision."""
    flops_per_second: float = 0.0
    """Operations of matrix products per second."""
    share: float = 0.0
    """`flops_per_second` divided by the measured rate of the same matrix products alone."""
    peak_bytes: int | None = None
    """Peak memory; None if it was not measured."""
    compile_seconds: float = 0.0
    """Time of the first steps beyond that of later ones: compilation and allocation."""


@dataclass(frozen=True, kw_only=True)
class SizeReport:
    """Results of all contenders at one size."""

    size: str
    """Name of the size."""
    recipe: str
    """Recipe of the model, with overrides."""
    pairs: int
    """Pairs in a batch."""
    length: int
    """Tokens of a source and of a target; the maximum with padding."""
    vocab_size: int
    """Size of the joint vocabulary."""
    tokens_per_step: float
    """Mean number of target tokens of a batch, without padding."""
    flops_per_token: float
    """Operations of the matrix products of a training step, per target token."""
    matrix_rates: dict[str, dict[str, float]]
    """Measured operations per second by precision: of the `model`'s products, and of a large
    `square` one."""
    results: list[Result] = field(default_factory=list)
    """One per contender and precision."""


def bench_train(settings: BenchSettings) -> dict[str, Any]:
    """Measure all contenders; return the results with their provenance as plain JSON."""
    with exact_float32():
        reports = [bench_size(name, settings) for name in settings.size_names]
    return {
        **describe_provenance(settings.device),
        "device": str(settings.device),
        "peers": {name: PEERS[name].version for name in settings.peers},
        "seed": settings.seed,
        "rounds": settings.rounds,
        "seconds": settings.seconds,
        "is_padded": settings.is_padded,
        "sizes": [asdict(report) for report in reports],
    }


@contextmanager
def exact_float32() -> Iterator[None]:
    """Compute float32 products without TF32 inside the block."""
    matmul, cudnn = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(matmul)
        torch.backends.cudnn.allow_tf32 = cudnn


def bench_size(name: str, settings: BenchSettings) -> SizeReport:
    """Measure all contenders at one size."""
    size, device = find_size(name), settings.device
    batches = build_batches(name, settings)
    products = forward_products(
        size.load().model,
        num_pairs=size.num_pairs,
        length=size.length,
        vocab_size=size.vocab_size,
    )
    rates = {
        precision: MatrixRate(products, dtype=find_dtype(precision, device), device=device)
        for precision in settings.precisions
    }

    def measure_rates() -> None:
        for rate in rates.values():
            rate.measure(RATE_SECONDS)

    entries = list_entries(name, settings)
    with show_message(f"Training {name} in turns"):
        measurements = measure_in_turns(
            {entry: partial(build_contender, entry, batches, settings) for entry in entries},
            rounds=settings.rounds,
            seconds=settings.seconds,
            device=device,
            each_round=measure_rates,
        )
    report = SizeReport(
        size=name,
        recipe=" ".join((size.recipe, *size.overrides)),
        pairs=size.num_pairs,
        length=size.length,
        vocab_size=size.vocab_size,
        tokens_per_step=batches.tokens_per_batch,
        flops_per_token=step_flops(products) / batches.tokens_per_batch,
        matrix_rates={
            precision: {"model": rate.model, "square": rate.square}
            for precision, rate in rates.items()
        },
    )
    results = [to_result(entry, measurements[entry], report) for entry in entries]
    if device.type == "cpu":
        with show_message("Measuring memory"):
            results = [
                _with_memory(entry, one, settings)
                for entry, one in zip(entries, results, strict=True)
            ]
    return replace(report, results=with_ratios(results))


def _with_memory(entry: Entry, result: Result, settings: BenchSettings) -> Result:
    """Add the peak memory on a CPU; not of compiled models, whose compiler takes more memory."""
    if result.error or result.note == COMPILED:
        return result
    return replace(result, peak_bytes=measure_process(entry, settings))


def to_result(entry: Entry, measured: Measurement, report: SizeReport) -> Result:
    """Return the results of an entry from its measurements."""
    if measured.error:
        return Result(contender=entry.contender, precision=entry.precision, error=measured.error)
    turns = tuple(report.tokens_per_step / seconds for seconds in measured.turns)
    flops_per_second = max(turns) * report.flops_per_token
    return Result(
        contender=entry.contender,
        precision=entry.precision,
        note=measured.note,
        parameters=measured.num_parameters,
        tokens_per_second=max(turns),
        turns=turns,
        flops_per_second=flops_per_second,
        share=flops_per_second / report.matrix_rates[entry.precision]["model"],
        peak_bytes=measured.peak_bytes,
        compile_seconds=measured.compile_seconds,
    )


def with_ratios(results: list[Result]) -> list[Result]:
    """Add the ratio to the fastest peer of the same precision, if there is one."""
    best: dict[str, float] = {}
    for one in results:
        if one.contender != OURS and not one.error:
            best[one.precision] = max(one.tokens_per_second, best.get(one.precision, 0.0))
    return [
        one
        if one.error or one.precision not in best
        else replace(one, ratio=one.tokens_per_second / best[one.precision])
        for one in results
    ]
