"""Benchmark of training: this package against other implementations, in turns."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import torch

from regard.bench.contender import Contender, TrainerContender
from regard.bench.matrix_rate import products_rate, square_rate
from regard.bench.peers.table import PEERS, build_peer
from regard.bench.products import Product, forward_products, step_flops
from regard.bench.sizes import RandomBatches, Size, build_task, find_size
from regard.bench.turns import Measurement, measure_in_turns
from regard.core.config import at_least
from regard.core.device import Precision, find_dtype, has_native_bf16, seed_everything
from regard.core.errors import ConfigError
from regard.core.tables import pick
from regard.runs.folder import describe_provenance

OURS = "regard"
"""Name of this package among the contenders."""

RATE_SECONDS = 0.1
"""Approximate time of measuring one shape of matrix products."""


@dataclass(frozen=True)
class Settings:
    """Settings of a benchmark of training."""

    device: torch.device
    """The device."""
    sizes: Sequence[str] = ()
    """Names of sizes; `base` on a GPU and `small` on a CPU if empty."""
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
    """Whether peers are compiled where possible."""

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


@dataclass(frozen=True)
class Result:
    """Measurements of one contender."""

    contender: str
    """`regard`, or the name of a peer."""
    precision: str
    """fp32 or bf16."""
    error: str = ""
    """Reason why there are no measurements."""
    note: str = ""
    """Such as whether the model is compiled."""
    parameters: int = 0
    """Number of trained parameters."""
    tokens_per_second: float = 0.0
    """Target tokens per second without padding, of the fastest turn."""
    turns: tuple[float, ...] = ()
    """Tokens per second of every turn."""
    ratio: float | None = None
    """Throughput divided by that of the fastest peer of the same precision."""
    flops_per_second: float = 0.0
    """Floating-point operations of matrix products per second."""
    share: float = 0.0
    """`flops_per_second` divided by the rate of the model's matrix products alone."""
    peak_bytes: int | None = None
    """Maximum memory allocated on a GPU by this contender; None on a CPU."""
    compile_seconds: float = 0.0
    """Time of the first steps beyond that of later steps: compilation and allocation."""


@dataclass(frozen=True)
class SizeReport:
    """Results of all contenders at one size."""

    size: str
    """Name of the size."""
    recipe: str
    """Recipe of the model, with overrides."""
    pairs: int
    """Pairs in a batch."""
    length: int
    """Maximum tokens of a source and of a target."""
    tokens_per_step: float
    """Mean number of target tokens of a batch, without padding."""
    flops_per_token: float
    """Operations of matrix products of a training step per target token."""
    matrix_rates: dict[str, dict[str, float]]
    """Operations per second by precision: of the model's products, and of a large square one."""
    results: list[Result] = field(default_factory=list)
    """One per contender and precision."""


def bench_train(settings: Settings) -> dict[str, Any]:
    """Measure all contenders; return the results with their provenance as plain JSON."""
    with _exact_float32():
        reports = [_bench_size(name, settings) for name in settings.size_names]
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
def _exact_float32() -> Iterator[None]:
    """Compute float32 products without TF32 inside the block."""
    matmul, cudnn = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(matmul)
        torch.backends.cudnn.allow_tf32 = cudnn


def _bench_size(name: str, settings: Settings) -> SizeReport:
    size, device = find_size(name), settings.device
    is_pinned = device.type == "cuda"
    batches = RandomBatches(
        size, seed=settings.seed, is_padded=settings.is_padded, is_pinned=is_pinned
    )
    products = forward_products(
        size.load().model,
        num_pairs=size.num_pairs,
        length=size.length,
        vocab_size=size.vocab_size,
    )
    report = SizeReport(
        size=name,
        recipe=" ".join((size.recipe, *size.overrides)),
        pairs=size.num_pairs,
        length=size.length,
        tokens_per_step=batches.tokens_per_batch,
        flops_per_token=step_flops(products) / batches.tokens_per_batch,
        matrix_rates={
            precision: _matrix_rates(products, find_dtype(precision, device), device)
            for precision in settings.precisions
        },
    )
    builders: dict[tuple[str, Precision], Callable[[], Contender]] = {
        (contender, precision): partial(_build, contender, precision, size, batches, settings)
        for precision in settings.precisions
        for contender in (OURS, *settings.peers)
    }
    measurements = measure_in_turns(
        builders, rounds=settings.rounds, seconds=settings.seconds, device=device
    )
    results = [_result(*key, one, report) for key, one in measurements.items()]
    return replace(report, results=_with_ratios(results))


def _matrix_rates(
    products: list[Product], dtype: torch.dtype, device: torch.device
) -> dict[str, float]:
    return {
        "model": products_rate(products, dtype=dtype, device=device, seconds=RATE_SECONDS),
        "square": square_rate(dtype=dtype, device=device, seconds=RATE_SECONDS),
    }


def _build(
    name: str, precision: Precision, size: Size, batches: RandomBatches, settings: Settings
) -> Contender:
    if name == OURS:
        task = build_task(size, precision, device=settings.device, seed=settings.seed)
        return TrainerContender(task, batches)
    seed_everything(settings.seed)
    return build_peer(
        PEERS[name],
        size.load(precision),
        batches,
        vocab_size=size.vocab_size,
        device=settings.device,
        can_compile=settings.can_compile,
    )


def _result(contender: str, precision: str, measured: Measurement, report: SizeReport) -> Result:
    if measured.error:
        return Result(contender, precision, error=measured.error)
    turns = tuple(report.tokens_per_step / seconds for seconds in measured.turns)
    flops_per_second = max(turns) * report.flops_per_token
    return Result(
        contender,
        precision,
        note=measured.note,
        parameters=measured.num_parameters,
        tokens_per_second=max(turns),
        turns=turns,
        flops_per_second=flops_per_second,
        share=flops_per_second / report.matrix_rates[precision]["model"],
        peak_bytes=measured.peak_bytes,
        compile_seconds=measured.compile_seconds,
    )


def _with_ratios(results: list[Result]) -> list[Result]:
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
