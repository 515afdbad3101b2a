"""Measure what a layer costs as texts grow: recurrence, convolution, self-attention.

    python benchmarks/cost.py --device cpu --threads 1

Time is the best of several passes forward and backward over one text. Memory is the peak of what
torch allocates during such a pass beyond weights and input: on a GPU as its allocator counts it,
on a CPU from the profiler, which sees every allocation, those inside fused kernels included.
The page is drawn from the JSON files by `benchmarks/pages.py`.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from regard.attention.heads import SelfAttention
from regard.core.device import find_device, seed_everything
from regard.core.files import write_json
from regard.models.convolutions import GatedConvolution, widen
from regard.tasks.runs import describe_making

LENGTHS = (128, 256, 512, 1024, 2048, 4096)
DIM = 256
HEADS = 4
KERNEL = 3


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
        return self.attention(states, self.attention.extend(states))[0]


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
    parser.add_argument("--threads", type=int, default=1, help="processor threads")
    parser.add_argument("--passes", type=int, default=10, help="passes to take the best of")
    parser.add_argument("--out", type=Path, default=Path("docs/results"), help="where JSON goes")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    device = find_device(arguments.device)
    command = "python benchmarks/cost.py --device {} --threads {} --passes {}"
    value = {
        **describe_making(device),
        "command": command.format(device.type, arguments.threads, arguments.passes),
        "dim": DIM,
        "heads": HEADS,
        "kernel": KERNEL,
        "lengths": LENGTHS,
        "layers": {
            name: [_measure(name, length, device, passes=arguments.passes) for length in LENGTHS]
            for name in LAYERS
        },
    }
    path = arguments.out / f"cost-{device.type}.json"
    write_json(path, value)
    print(path)


def _measure(name: str, length: int, device: torch.device, *, passes: int) -> dict[str, Any]:
    seed_everything(1)
    layer = LAYERS[name]().to(device)
    states = torch.randn(1, length, DIM, device=device, requires_grad=True)
    # The first pass makes the weights' gradients and warms up; it is not counted.
    _forth_and_back(layer, states)
    seconds = min(_time(layer, states, device) for _ in range(passes))
    peak = _peak_of_gpu(layer, states) if device.type == "cuda" else _peak_of_cpu(layer, states)
    print(f"{name:>20} {length:>5} {1e3 * seconds:9.2f} ms {peak / 2**20:9.2f} MiB")
    return {"length": length, "seconds": seconds, "peak_bytes": peak}


def _forth_and_back(layer: nn.Module, states: Tensor) -> None:
    layer(states).sum().backward()


def _time(layer: nn.Module, states: Tensor, device: torch.device) -> float:
    _wait(device)
    started = time.perf_counter()
    _forth_and_back(layer, states)
    _wait(device)
    return time.perf_counter() - started


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
    kineto = seen.profiler.kineto_results  # type: ignore[union-attr]
    allocations = [event for event in kineto.events() if event.name() == "[memory]"]
    allocations.sort(key=lambda event: event.start_ns())
    now = peak = 0
    for event in allocations:
        now += event.nbytes()
        peak = max(peak, now)
    return peak


if __name__ == "__main__":
    main()
