"""Benchmarks of time and memory: training speed, cost of layers, cost of long sources.

Times are the best of several rounds over all points, so that other load on the machine affects
none of them more than others.
"""

import math
import multiprocessing
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

import torch
from gather_images import show_attend_tell
from results import rounded, write_results
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from regard.attention.multihead import SelfAttention
from regard.core.device import find_device, seed_everything
from regard.core.files import read_json, read_json_lines
from regard.core.specs import TextSpec
from regard.data.datasets.catalog import find_data
from regard.data.text.readers import write_examples
from regard.models.build import build_model
from regard.models.convolutional import GatedConvolution
from regard.runs import folder as runs
from regard.runs.recipes import load_recipe
from regard.search.scorer import ModelScorer
from regard.search.search import search
from regard.search.settings import SearchConfig

Options = Mapping[str, str]
RECURRENT = ("sutskever2014", "cho2014", "bahdanau2015", "luong2015")


def training_speed(out: Path, options: Options) -> None:
    """Train recurrent recipes on Multi30k for a few steps and write their tokens per second."""
    name, steps = options.get("name", "cpu"), int(options.get("steps", 60))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        few = Path(folder) / "few.jsonl"
        write_examples(few, find_data("multi30k").test[:20])
        for recipe in RECURRENT:
            words = ["multi30k", "--valid", str(few), "--test", str(few), "--recipe", recipe]
            words += ["--out", f"{folder}/{recipe}", f"train.max_steps={steps}"]
            words += [f"train.log_every={max(1, steps // 6)}", "train.schedule.kind=constant"]
            words += ["train.average_last=0", "search.beams=1"]
            command = [sys.executable, "-m", "regard", "train", *words]
            subprocess.run(command, check=True, capture_output=True)
            metrics = read_json(Path(folder) / recipe / runs.METRICS)
            lines = read_json_lines(Path(folder) / recipe / runs.TRAINING_LOG)
            speeds = [row["tokens_per_second"] for row in lines if row["kind"] == "train"]
            keys = ("parameters", "hardware", "torch", "commit", "seed")
            speed = {"recipe": recipe, "tokens_per_second": round(median(speeds[1:]), 1)}
            rows.append({**speed, **{key: metrics[key] for key in keys}})
            print(f"{recipe}: {median(speeds[1:]):,.0f} target tokens/s", flush=True)
    command_line = f"python benchmarks/run.py speed --set name={name} steps={steps}"
    value = {"experiment": f"speed-{name}", "command": command_line, "runs": rows}
    write_results(out / f"speed-{name}.json", value)


LAYER_LENGTHS = (128, 256, 512, 1024, 2048, 4096)
DIM, HEADS, KERNEL, PASSES = 256, 4, 3, 3


class Recurrent(nn.Module):
    """A GRU layer."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(DIM, DIM, batch_first=True)

    def forward(self, states: Tensor) -> Tensor:
        """Encode (1, T, D)."""
        encoded: Tensor = self.gru(states)[0]
        return encoded


class Convolution(nn.Module):
    """A gated convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = GatedConvolution(DIM, KERNEL)

    def forward(self, states: Tensor) -> Tensor:
        """Encode (1, T, D)."""
        padded = nn.functional.pad(states, (0, 0, KERNEL // 2, KERNEL // 2))
        encoded: Tensor = self.convolution(padded)
        return encoded


class Attention(nn.Module):
    """Self-attention, with explicit weights or with the fused kernel."""

    def __init__(self, *, needs_weights: bool) -> None:
        super().__init__()
        self.attention = SelfAttention(dim=DIM, num_heads=HEADS)
        self.attention.needs_weights = needs_weights

    def forward(self, states: Tensor) -> Tensor:
        """Encode (1, T, D)."""
        return self.attention(states)[0]


LAYERS: dict[str, Callable[[], nn.Module]] = {
    "GRU": Recurrent,
    "convolution": Convolution,
    "attention, explicit": lambda: Attention(needs_weights=True),
    "attention, fused": lambda: Attention(needs_weights=False),
}


def layer_cost(out: Path, options: Options) -> None:
    """Measure time and memory of a forward and backward pass through each layer by length."""
    torch.set_num_threads(1)
    device, rounds = find_device(options.get("device", "auto")), int(options.get("rounds", 8))
    points: dict[tuple[str, int], tuple[nn.Module, Tensor]] = {}
    for name, build in LAYERS.items():
        for length in LAYER_LENGTHS:
            seed_everything(1)
            layer = build().to(device)
            states = torch.randn(1, length, DIM, device=device, requires_grad=True)
            _pass(layer, states)  # allocates the gradients and warms up
            points[name, length] = layer, states
    best = dict.fromkeys(points, math.inf)
    for _ in range(rounds):
        for key, (layer, states) in points.items():
            for _ in range(PASSES):
                best[key] = min(best[key], _time(layer, states, device))
    measure_peak = _peak_of_gpu if device.type == "cuda" else _peak_of_cpu
    layers: dict[str, list[Any]] = {name: [] for name in LAYERS}
    for (name, length), (layer, states) in points.items():
        peak = measure_peak(layer, states)
        layers[name].append({"length": length, "seconds": best[name, length], "peak_bytes": peak})
        print(f"{name:>20} {length:>5} {1e3 * best[name, length]:9.2f} ms {peak / 2**20:9.2f} MiB")
    command = f"python benchmarks/run.py cost --set device={device.type} rounds={rounds}"
    about = {**runs.describe_provenance(device), "command": command}
    sizes = {"dim": DIM, "heads": HEADS, "kernel": KERNEL, "lengths": list(LAYER_LENGTHS)}
    write_results(out / f"cost-{device.type}.json", rounded({**about, **sizes, "layers": layers}))


def _pass(layer: nn.Module, states: Tensor) -> None:
    layer(states).sum().backward()


def _time(layer: nn.Module, states: Tensor, device: torch.device) -> float:
    """Return the wall time on a GPU, and the processor time of one thread on a CPU."""
    is_gpu = device.type == "cuda"
    clock = time.perf_counter if is_gpu else time.process_time
    torch.cuda.synchronize(device) if is_gpu else None
    started = clock()
    _pass(layer, states)
    torch.cuda.synchronize(device) if is_gpu else None
    return clock() - started


def _peak_of_gpu(layer: nn.Module, states: Tensor) -> int:
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    _pass(layer, states)
    return torch.cuda.max_memory_allocated() - before


def _peak_of_cpu(layer: nn.Module, states: Tensor) -> int:
    """Return the peak of all allocations that the profiler records, those inside kernels too."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        _pass(layer, states)
    events = profiler.profiler.kineto_results.events()
    allocations = [event for event in events if event.name() == "[memory]"]
    now = peak = 0
    for event in sorted(allocations, key=lambda event: event.start_ns()):
        now += event.nbytes()
        peak = max(peak, now)
    return peak


SOURCE_LENGTHS = (150, 300, 600, 1200, 2400)
COUNTED = 1200
"""The length at which operations are counted, which takes long."""
SOURCES, TARGET, BEAMS, VOCABULARY = 4, 60, 4, 8000
PAD, START, END = 0, 2, 3
WINDOW = "model.encoder.window=64"
MODELS: dict[str, tuple[str, ...]] = {
    "recurrent": ("bahdanau2015",),
    "convolution": ("gehring2017", "model.encoder.max_length=2400"),
    "transformer": ("modern-small",),
    "window": ("modern-small", WINDOW),
    "window, pooled memory": ("modern-small", WINDOW, "model.encoder.pooling=4"),
}
"""Recipes and overrides by the name on the page."""


def long_sources(out: Path, options: Options) -> None:
    """Measure a training step and a beam search with random tokens by source length.

    Each measurement is a process of its own. Time is its processor time on one thread; memory is
    by how much it grew beyond the model (Linux).
    """
    torch.set_num_threads(1)
    rounds = int(options.get("rounds", 2))
    points = [Point(name, length) for length in SOURCE_LENGTHS for name in MODELS]
    for _ in range(rounds):
        for point in points:
            point.measure()
    models = {
        name: {
            "recipe": " ".join(words),
            "points": [point.describe() for point in points if point.name == name],
        }
        for name, words in MODELS.items()
    }
    matrix = torch.randn(1024, 1024)
    seconds = [_processor_time(lambda: matrix @ matrix) for _ in range(20)]
    command = f"python benchmarks/run.py long --set rounds={rounds}"
    sizes = {
        "sources": SOURCES,
        "target": TARGET,
        "beams": BEAMS,
        "flops_per_second": 2 * 1024**3 / min(seconds),
    }
    about = {**runs.describe_provenance(find_device("cpu")), "command": command, **sizes}
    value = {**about, "lengths": list(SOURCE_LENGTHS), "models": models}
    write_results(out / "long.json", rounded(value))


class Point:
    """A model and a source length, with the best times so far."""

    def __init__(self, name: str, length: int) -> None:
        self.name = name
        self.model = _build(name)
        generator = torch.Generator().manual_seed(length)
        self.source = torch.randint(4, VOCABULARY, (SOURCES, length), generator=generator)
        self.targets = torch.randint(4, VOCABULARY, (SOURCES, TARGET + 1), generator=generator)
        self.mask = torch.ones_like(self.source, dtype=torch.bool)
        self.steps: dict[str, Callable[[], object]] = {"train": self._train, "search": self._search}
        self.best = dict.fromkeys(self.steps, (math.inf, math.inf))

    def measure(self) -> None:
        """Run both steps once and keep the best values."""
        for name, step in self.steps.items():
            seconds, grown = _measure(step)
            self.best[name] = min(self.best[name][0], seconds), min(self.best[name][1], grown)

    def describe(self) -> dict[str, Any]:
        """Return the best values, with the operations of a training step at one length."""
        found: dict[str, Any] = {"length": self.source.shape[1]}
        for name, (seconds, grown) in self.best.items():
            found[name] = {"seconds": seconds, "peak_bytes": grown}
            print(f"{self.name:>22} {found['length']:>5} {name:>6} {seconds:7.2f} s")
        if found["length"] == COUNTED:
            with FlopCounterMode(display=False) as counter:
                self._train()
            found["train"]["flops"] = counter.get_total_flops()
        return found

    def _train(self) -> None:
        self.model.train()
        logits = self.model(self.source, self.mask, self.targets[:, :-1]).logits
        labels = self.targets[:, 1:]
        nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten()).backward()

    def _search(self) -> None:
        self.model.eval()
        with torch.inference_mode():
            memory = self.model.encode(self.source, self.mask)
            search(
                ModelScorer(self.model, memory, banned=(PAD, START)),
                start=START,
                end=END,
                max_lengths=torch.full((SOURCES,), TARGET),
                # No target ends early, so that all models take as many steps.
                config=SearchConfig(beams=BEAMS, min_length=TARGET - 1),
                num_best=1,
                prefixes=[[]] * SOURCES,
            )


@cache
def _build(name: str) -> Any:
    recipe: Any = load_recipe(MODELS[name][0], MODELS[name][1:])
    seed_everything(1)
    return build_model(recipe.model, source=TextSpec(VOCABULARY), target_vocab_size=VOCABULARY)


def _processor_time(step: Callable[[], object]) -> float:
    started = time.process_time()
    step()
    return time.process_time() - started


def _measure(step: Callable[[], object]) -> tuple[float, int]:
    """Run a step in a copy of this process; return its seconds and by how many bytes it grew."""
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    child = fork.Process(target=_run_step, args=(step, sender))
    child.start()
    sender.close()
    try:
        seconds, grown = receiver.recv()
    except EOFError:
        raise SystemExit("A measurement was killed: there may be too little memory.") from None
    child.join()
    return seconds, grown


def _run_step(step: Callable[[], object], sender: Connection) -> None:
    before = _resident("VmRSS")
    seconds = _processor_time(step)
    sender.send((seconds, _resident("VmHWM") - before))


def _resident(name: str) -> int:
    """Return the bytes of memory that this process has (VmRSS), or had at most (VmHWM)."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    found = re.search(rf"{name}:\s+(\d+) kB", status)
    assert found is not None
    return 1024 * int(found[1])


BENCHMARKS: dict[str, Callable[[Path, Options], None]] = {
    "training_speed": training_speed,
    "layer_cost": layer_cost,
    "long_sources": long_sources,
    "show_attend_tell": show_attend_tell,
}
"""Functions by the name in a plan: (folder of result files, options of `--set`)."""
