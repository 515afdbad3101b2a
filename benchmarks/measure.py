"""Benchmarks of time and memory: training speed, cost of layers, cost of long sources.

Times are the best of several rounds over all points, so that other load on the machine affects
none of them more than others.
"""

import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import torch
from depth import depth
from gather import count_flops, resident
from gather_media import shrink
from results import Row, rounded, write_results
from serving import serving_load
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from regard.attention.multihead import SelfAttention
from regard.core.device import find_device, seed_everything
from regard.core.files import read_json, read_json_lines
from regard.core.specs import TextSpec
from regard.data.datasets.catalog import find_data
from regard.data.datasets.synthetic.scenes.captions import IRREGULAR_PLURALS
from regard.data.datasets.synthetic.scenes.objects import SHAPES
from regard.data.text.readers import write_examples
from regard.models.build import build_model
from regard.models.convolutional import GatedConvolution
from regard.plots.figure import save
from regard.runs import folder as runs
from regard.runs.provenance import describe_provenance
from regard.runs.recipes import load_recipe
from regard.runs.request import Request
from regard.search.scorer import ModelScorer
from regard.search.search import search
from regard.search.settings import SearchConfig
from regard.studies.reproduce.applications.show_attend_tell import (
    CHANCE,
    EXACT,
    POINTING,
    RELATIONS,
    attention_rows,
    measure_captions,
)
from regard.studies.reproduce.running import train_run

Options = Mapping[str, str]


def training_speed(out: Path, options: Options) -> None:
    """Train recurrent recipes on Multi30k for a few steps and write their tokens per second."""
    name, steps = options.get("name", "cpu"), int(options.get("steps", 60))
    rows = []
    for recipe in ("sutskever2014", "cho2014", "bahdanau2015", "luong2015"):
        with tempfile.TemporaryDirectory() as folder:
            few, run = f"{folder}/few.jsonl", Path(folder) / "run"
            write_examples(Path(few), find_data("multi30k").test[:20])
            words = ["multi30k", "--valid", few, "--test", few, "--recipe", recipe]
            words += ["--out", str(run), f"train.max_steps={steps}"]
            words += ["train.schedule.kind=constant", "train.schedule.warmup_steps=0"]
            words += [f"train.log_every={max(1, steps // 6)}", "train.average_last=0"]
            command = [sys.executable, "-m", "regard", "train", *words, "search.beams=1"]
            subprocess.run(command, check=True, capture_output=True)
            metrics, log = read_json(run / runs.METRICS), read_json_lines(run / runs.TRAINING_LOG)
        speeds = [row["tokens_per_second"] for row in log if row["kind"] == "train"]
        about = {key: metrics[key] for key in ("parameters", "hardware", "torch", "commit", "seed")}
        rows.append({"recipe": recipe, "tokens_per_second": round(median(speeds[1:]), 1), **about})
        print(f"{recipe}: {rows[-1]['tokens_per_second']:,.0f} target tokens/s", flush=True)
    command_line = f"python benchmarks/run.py speed --set name={name} steps={steps}"
    value = {"experiment": f"speed-{name}", "command": command_line, "runs": rows}
    write_results(out / f"speed-{name}.json", value)


def speed_against_peers(out: Path, options: Options) -> None:
    """Run `regard bench train` and write its report; `name` names the machine in the file."""
    given = {"size": "small,bahdanau2015,gehring2017", **options}
    name = f"training-speed{'-' * ('name' in given)}{given.pop('name', '')}"
    words = [word for key, value in given.items() for word in (f"--{key}", value)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        command = [sys.executable, "-m", "regard", "bench", "train", *words, "--json"]
        subprocess.run([*command, "--out", str(path)], check=True)
        report = read_json(path)
    settings = " ".join(f"{key}={value}" for key, value in options.items())
    command_line = f"python benchmarks/run.py training-speed{settings and f' --set {settings}'}"
    value = {"experiment": name, **report, "command": command_line}
    write_results(out / f"{name}.json", rounded(value))


DECODED = "vaswani2017-small"
"""Recipe of the run whose decoding is measured, unless runs are given."""


def decoding_against_peers(out: Path, options: Options) -> None:
    """Run `regard bench decode` for each run and write the reports.

    `run` has run folders with commas, one of `vaswani2017-small` if not given, trained first if
    there is none; `name` names the machine in the file; other options are those of the command,
    with `_` for `-`.
    """
    given = {"batch_mates": "1000", **options}
    name = f"decoding-speed{'-' * ('name' in given)}{given.pop('name', '')}"
    folders = [Path(folder) for folder in given.pop("run", "").split(",") if folder]
    if not folders:
        folders = [Path("runs", "decoding-speed", DECODED)]
        if not (folders[0] / runs.METRICS).exists():
            words = ["multi30k", "--recipe", DECODED, "--out", str(folders[0])]
            subprocess.run([sys.executable, "-m", "regard", "train", *words], check=True)
    words = [word for key, value in given.items() for word in (f"--{key.replace('_', '-')}", value)]
    reports = []
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "report.json"
        for folder in folders:
            command = [sys.executable, "-m", "regard", "bench", "decode", str(folder), *words]
            subprocess.run([*command, "--json", "--out", str(path)], check=True)
            reports.append(read_json(path))
    about = {key: reports[0][key] for key in ("regard", "torch", "commit", "hardware", "threads")}
    settings = " ".join(
        f"run={','.join(folder.name for folder in folders)}" if key == "run" else f"{key}={value}"
        for key, value in options.items()
    )
    command_line = f"python benchmarks/run.py decoding-speed{settings and f' --set {settings}'}"
    value = {"experiment": name, "command": command_line, **about}
    value["reports"] = [
        {key: one for key, one in report.items() if key not in (*about, "command")}
        for report in reports
    ]
    write_results(out / f"{name}.json", rounded(value))


CAPTIONERS = {
    "soft": "xu2015-laptop",
    "hard": "xu2015-hard-laptop",
    "transformer": "vit-captions-laptop",
}
"""Recipes by the kind of attention or model."""


def show_attend_tell(out: Path, options: Options) -> None:
    """Train "Show, attend and tell" on rendered scenes and write numbers and plots."""
    folder, seed = Path(options.get("folder", "runs/show-attend-tell")), options.get("seed", "1")
    test = find_data("scenes").test
    # A third group of objects is named in a relative clause.
    shown = [example for example in test if "which" in example.target.split()][:5]
    plurals = {IRREGULAR_PLURALS.get(shape, f"{shape}s") for shape in SHAPES}
    words = {*SHAPES, *plurals, *RELATIONS}
    numbers, training = {}, {}
    for name, recipe in CAPTIONERS.items():
        request = Request(data=("scenes",), recipe=recipe, out=folder / name)
        task = train_run(request, int(seed))
        numbers[name] = measure_captions(task, test)
        metrics = folder / f"{name}-{seed}" / runs.METRICS
        training[name] = read_json(metrics)["training"]
        path = out / f"scenes-show-attend-tell{'' if name == 'soft' else f'-{name}'}.png"
        save(path, attention_rows({name: task}, shown, words).figure)
        shrink(path)
    value = {
        **describe_provenance(torch.device("cpu")),
        "command": f"python benchmarks/run.py scenes --set seed={seed}",
        "seed": int(seed),
        "numbers": numbers,
        "relations": [{"claim": claim, "holds": holds(numbers)} for claim, holds in CLAIMS.items()],
        "training": training,
    }
    write_results(out / "scenes.json", rounded(value))


CLAIMS: Mapping[str, Callable[[Mapping[str, Mapping[str, float]]], bool]] = {
    "Soft attention generates 95 of 100 captions exactly.": lambda numbers: (
        numbers["soft"][EXACT] >= 95
    ),
    "A transformer generates 95 of 100 captions exactly.": lambda numbers: (
        numbers["transformer"][EXACT] >= 95
    ),
    "Hard attention generates most captions exactly.": lambda numbers: numbers["hard"][EXACT] > 50,
    "Soft attention points at the named object four times as often as chance.": lambda numbers: (
        numbers["soft"][POINTING] >= 4 * numbers["soft"][CHANCE]
    ),
    "Hard attention points at the named object four times as often as chance.": lambda numbers: (
        numbers["hard"][POINTING] >= 4 * numbers["hard"][CHANCE]
    ),
}


LAYER_LENGTHS = (128, 256, 512, 1024, 2048, 4096)
DIM, HEADS, KERNEL, PASSES = 256, 4, 3, 3


def _attention(*, needs_weights: bool) -> SelfAttention:
    attention = SelfAttention(dim=DIM, num_heads=HEADS)
    attention.needs_weights = needs_weights
    return attention


LAYERS: dict[str, Callable[[], nn.Module]] = {
    "GRU": lambda: nn.GRU(DIM, DIM, batch_first=True),
    "convolution": lambda: nn.Sequential(
        nn.ZeroPad2d((0, 0, KERNEL // 2, KERNEL // 2)), GatedConvolution(DIM, KERNEL)
    ),
    "attention, explicit": lambda: _attention(needs_weights=True),
    "attention, fused": lambda: _attention(needs_weights=False),
}


def layer_cost(out: Path, options: Options) -> None:
    """Measure time and memory of a forward and backward pass through each layer by length."""
    torch.set_num_threads(1)
    device, rounds = find_device(options.get("device", "auto")), int(options.get("rounds", 8))
    steps: dict[tuple[str, int], Callable[[], None]] = {}
    for name, length in product(LAYERS, LAYER_LENGTHS):
        seed_everything(1)
        states = torch.randn(1, length, DIM, device=device, requires_grad=True)
        steps[name, length] = partial(_pass, LAYERS[name]().to(device), states)
        steps[name, length]()  # allocates the gradients and warms up
    peak = _peak_of_gpu if device.type == "cuda" else _peak_of_cpu
    best = _best(steps, rounds * PASSES, lambda step: {"seconds": _seconds(step, device)})
    layers: dict[str, list[Row]] = {name: [] for name in LAYERS}
    for (name, length), step in steps.items():
        point = {"length": length, **best[name, length], "peak_bytes": peak(step)}
        layers[name].append(point)
    command = f"python benchmarks/run.py cost --set device={device.type} rounds={rounds}"
    about = {**describe_provenance(device), "command": command}
    sizes = {"dim": DIM, "heads": HEADS, "kernel": KERNEL, "lengths": list(LAYER_LENGTHS)}
    write_results(out / f"cost-{device.type}.json", rounded({**about, **sizes, "layers": layers}))


def _best(steps: Mapping[Any, Callable[[], Any]], rounds: int, measure: Any) -> dict[Any, Row]:
    """Return the least values that measurements of each step give."""
    best: dict[Any, Row] = {}
    for number, key in product(range(rounds), steps):
        found = measure(steps[key])
        best[key] = {name: min(found[name], best.get(key, found)[name]) for name in found}
        print(f"round {number + 1}: {key} {found['seconds']:.4f} s", flush=True)
    return best


def _pass(layer: nn.Module, states: Tensor) -> None:
    output = layer(states)
    (output if isinstance(output, Tensor) else output[0]).sum().backward()


def _seconds(step: Callable[[], object], device: torch.device | None = None) -> float:
    """Return the wall time on a GPU, and the processor time of one thread on a CPU."""
    is_gpu = device is not None and device.type == "cuda"
    clock = time.perf_counter if is_gpu else time.process_time
    torch.cuda.synchronize(device) if is_gpu else None
    started = clock()
    step()
    torch.cuda.synchronize(device) if is_gpu else None
    return clock() - started


def _peak_of_gpu(step: Callable[[], object]) -> int:
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step()
    return torch.cuda.max_memory_allocated() - before


def _peak_of_cpu(step: Callable[[], object]) -> int:
    """Return the peak of all allocations that the profiler records, those inside kernels too."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step()
    events = profiler.profiler.kineto_results.events()
    now = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        now += event.nbytes() if event.name() == "[memory]" else 0
        peak = max(peak, now)
    return peak


SOURCE_LENGTHS = (150, 300, 600, 1200, 2400)
COUNTED = 1200
"""The length at which operations are counted, which takes long."""
SOURCES, TARGET, BEAMS, VOCABULARY = 4, 60, 4, 8000
PAD, START, END = 0, 2, 3
MODELS = {
    "recurrent": "bahdanau2015",
    "convolution": "gehring2017 model.encoder.max_length=2400",
    "transformer": "modern-small",
    "window": "modern-small model.encoder.window=64",
    "window, pooled memory": "modern-small model.encoder.window=64 model.encoder.pooling=4",
}
"""Recipes and overrides by the name on the page."""


def long_sources(out: Path, options: Options) -> None:
    """Measure a training step and a beam search with random tokens by source length.

    Each measurement is a process of its own. Time is its processor time on one thread; memory is
    by how much it grew beyond the model (Linux).
    """
    torch.set_num_threads(1)
    rounds = int(options.get("rounds", 2))
    built = {name: _build(recipe) for name, recipe in MODELS.items()}
    kinds = {"train": _train, "search": _search}
    steps = {
        (name, length, kind): partial(kinds[kind], built[name], length)
        for length, name, kind in product(SOURCE_LENGTHS, MODELS, kinds)
    }
    best = _best(steps, rounds, _measure)
    for name in MODELS:
        best[name, COUNTED, "train"]["flops"] = count_flops(steps[name, COUNTED, "train"])
    models: Row = {name: {"recipe": recipe, "points": []} for name, recipe in MODELS.items()}
    for name, length in product(MODELS, SOURCE_LENGTHS):
        point = {kind: best[name, length, kind] for kind in kinds}
        models[name]["points"].append({"length": length, **point})
    matrix = torch.randn(1024, 1024)
    seconds = min(_seconds(lambda: matrix @ matrix) for _ in range(20))
    about = describe_provenance(find_device("cpu"))
    about |= {"command": f"python benchmarks/run.py long --set rounds={rounds}"}
    about |= {"sources": SOURCES, "target": TARGET, "beams": BEAMS}
    about |= {"flops_per_second": 2 * 1024**3 / seconds, "lengths": list(SOURCE_LENGTHS)}
    write_results(out / "long.json", rounded({**about, "models": models}))


def _build(words: str) -> Any:
    name, *overrides = words.split()
    recipe: Any = load_recipe(name, overrides)
    seed_everything(1)
    return build_model(recipe.model, source=TextSpec(VOCABULARY), target_vocab_size=VOCABULARY)


def _random(length: int) -> Tensor:
    """Return token indices (B, T), the same ones for the same length."""
    generator = torch.Generator().manual_seed(length)
    return torch.randint(4, VOCABULARY, (SOURCES, length), generator=generator)


def _train(model: Any, length: int) -> None:
    source, targets = _random(length), _random(TARGET + 1)
    model.train()
    logits = model(source, torch.ones_like(source, dtype=torch.bool), targets[:, :-1]).logits
    nn.functional.cross_entropy(logits.flatten(0, 1), targets[:, 1:].flatten()).backward()


def _search(model: Any, length: int) -> None:
    source = _random(length)
    model.eval()
    with torch.inference_mode():
        memory = model.encode(source, torch.ones_like(source, dtype=torch.bool))
        scorer = ModelScorer(model, memory, banned=(PAD, START))
        # No target ends early, so that all models take as many steps.
        config = SearchConfig(beams=BEAMS, min_length=TARGET - 1)
        limits = torch.full((SOURCES,), TARGET)
        options = {"start": START, "end": END, "num_best": 1, "prefixes": [[]] * SOURCES}
        search(scorer, max_lengths=limits, config=config, **options)


def _measure(step: Callable[[], object]) -> Row:
    """Run a step in a copy of this process; return its seconds and by how many bytes it grew."""
    fork = multiprocessing.get_context("fork")
    results = fork.SimpleQueue()

    def run() -> None:
        before = resident("VmRSS")
        seconds = _seconds(step)
        results.put({"seconds": seconds, "peak_bytes": resident("VmHWM") - before})

    child = fork.Process(target=run)
    child.start()
    child.join()
    if child.exitcode:
        raise SystemExit("A measurement was killed: there may be too little memory.")
    return dict(results.get())


_ALL = (
    training_speed, speed_against_peers, decoding_against_peers, show_attend_tell, layer_cost,
    long_sources, depth, serving_load,
)  # fmt: skip
BENCHMARKS = {one.__name__: one for one in _ALL}
"""Functions by the name in a plan: (folder of result files, options of `--set`)."""
