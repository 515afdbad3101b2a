"""Measure what a layer costs as texts grow: recurrence, convolution, self-attention.

    python benchmarks/cost.py --device cpu

Time is the best of many passes forward and backward over one text: on a GPU by the clock, on a CPU
the processor time of one thread, so that what else runs on the machine is not counted. Memory is
the peak of what torch allocates during such a pass beyond weights and input: on a GPU as its
allocator counts it, on a CPU from the profiler, which sees every allocation, those inside fused
kernels included.
The page is drawn from the JSON files by `benchmarks/pages.py`.
"""

import argparse
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from regard.attention.multihead import SelfAttention
from regard.core.device import find_device, seed_everything
from regard.core.files import write_json
from regard.models.convolutional import GatedConvolution, widen
from regard.runs.folder import describe_provenance

LENGTHS = (128, 256, 512, 1024, 2048, 4096)
DIM = 256
HEADS = 4
KERNEL = 3
PASSES = 3


class Recurrence(nn.Module):
    """A GRU layer: every step waits for the one before."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(DIM, DIM, batch_first=True)

    def forward(self, states: Tensor) -> Tensor:
        """Read a text."""
        read: Tensor = self.gru(states)[0]
        return read


class Convolution(nn.Module):
    """A gated convolution: every position sees its neighbours."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = GatedConvolution(DIM, KERNEL)

    def forward(self, states: Tensor) -> Tensor:
        """Read a text."""
        read: Tensor = self.convolution(widen(states, before=KERNEL // 2, after=KERNEL // 2))
        return read


class Look(nn.Module):
    """Self-attention: every position sees every other, with weights written down or not."""

    def __init__(self, *, needs_weights: bool) -> None:
        super().__init__()
        self.attention = SelfAttention(dim=DIM, num_heads=HEADS)
        self.attention.needs_weights = needs_weights

    def forward(self, states: Tensor) -> Tensor:
        """Read a text."""
        return self.attention(states)[0]


LAYERS: dict[str, Callable[[], nn.Module]] = {
    "GRU": Recurrence,
    "convolution": Convolution,
    "attention, explicit": lambda: Look(needs_weights=True),
    "attention, fused": lambda: Look(needs_weights=False),
}


def main() -> None:
    """Measure every layer at every length and write the numbers down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--rounds", type=int, default=8, help="rounds to take the best of")
    parser.add_argument("--out", type=Path, default=Path("docs/results"), help="where JSON goes")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    device = find_device(arguments.device)
    points = [Point(name, length, device) for name in LAYERS for length in LENGTHS]
    # Round after round over all points, so that a busy minute of the machine spoils none of them.
    for _ in range(arguments.rounds):
        for point in points:
            point.measure_time()
    value = {
        **describe_provenance(device),
        "command": f"python benchmarks/cost.py --device {device.type} --rounds {arguments.rounds}",
        "dim": DIM,
        "heads": HEADS,
        "kernel": KERNEL,
        "lengths": LENGTHS,
        "layers": {
            name: [point.describe() for point in points if point.name == name] for name in LAYERS
        },
    }
    path = arguments.out / f"cost-{device.type}.json"
    write_json(path, value)
    print(path)


class Point:
    """A layer and a length, and the best time so far."""

    def __init__(self, name: str, length: int, device: torch.device) -> None:
        seed_everything(1)
        self.name = name
        self.device = device
        self.seconds = math.inf
        self.layer = LAYERS[name]().to(device)
        self.states = torch.randn(1, length, DIM, device=device, requires_grad=True)
        # The first pass makes room for the gradients and warms up; it is not counted.
        _forth_and_back(self.layer, self.states)

    def measure_time(self) -> None:
        """Pass a few times; only the fastest counts."""
        for _ in range(PASSES):
            self.seconds = min(self.seconds, _time(self.layer, self.states, self.device))

    def describe(self) -> dict[str, Any]:
        """Say what a pass takes."""
        measure_peak = _peak_of_gpu if self.device.type == "cuda" else _peak_of_cpu
        peak = measure_peak(self.layer, self.states)
        length = self.states.shape[1]
        print(f"{self.name:>20} {length:>5} {1e3 * self.seconds:9.2f} ms {peak / 2**20:9.2f} MiB")
        return {"length": length, "seconds": self.seconds, "peak_bytes": peak}


def _forth_and_back(layer: nn.Module, states: Tensor) -> None:
    layer(states).sum().backward()


def _time(layer: nn.Module, states: Tensor, device: torch.device) -> float:
    clock = time.perf_counter if device.type == "cuda" else time.process_time
    _wait(device)
    started = clock()
    _forth_and_back(layer, states)
    _wait(device)
    return clock() - started


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _peak_of_gpu(layer: nn.Module, states: Tensor) -> int:
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    _forth_and_back(layer, states)
    return torch.cuda.max_memory_allocated() - before


def _peak_of_cpu(layer: nn.Module, states: Tensor) -> int:
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        _forth_and_back(layer, states)
    kineto = seen.profiler.kineto_results
    allocations = [event for event in kineto.events() if event.name() == "[memory]"]
    allocations.sort(key=lambda event: event.start_ns())
    now = peak = 0
    for event in allocations:
        now += event.nbytes()
        peak = max(peak, now)
    return peak


if __name__ == "__main__":
    main()
