"""Measure what long sources cost: a step of training, and a search, with whole models.

    python benchmarks/long.py

Batches of four sources and targets of sixty tokens, random words: cost does not ask what they
mean. Every measurement is a process of its own that works once. Time is its processor time on one
thread, so that what else runs on the machine is not counted, the best of several rounds; memory is
how far it grew beyond the model (Linux). The page is drawn from the JSON file by
`benchmarks/pages.py`.
"""

import argparse
import math
import multiprocessing
import re
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from regard.core.device import find_device, seed_everything
from regard.core.files import write_json
from regard.models.build import build_model
from regard.models.seq2seq import EncoderDecoder
from regard.runs.folder import describe_provenance
from regard.runs.recipes import load_recipe
from regard.search.scorer import ModelScorer
from regard.search.search import search
from regard.search.settings import SearchConfig
from regard.tasks.generation.recipe import Recipe

LENGTHS = (150, 300, 600, 1200, 2400)
COUNTED = 1200
"""The length at which operations are counted, which takes its time."""
SOURCES = 4
TARGET = 60
BEAMS = 4
VOCABULARY = 8000
PAD, START, END = 0, 2, 3

WINDOW = "model.encoder.window=64"
MODELS: dict[str, tuple[str, tuple[str, ...]]] = {
    "recurrent": ("bahdanau2015", ()),
    "convolution": ("gehring2017", ("model.encoder.max_length=2400",)),
    "transformer": ("modern-small", ()),
    "window": ("modern-small", (WINDOW,)),
    "window, pooled memory": ("modern-small", (WINDOW, "model.encoder.pooling=4")),
}
"""A recipe and what is changed of it, by the name on the page."""


def main() -> None:
    """Measure every model at every length and write the numbers down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2, help="rounds to take the best of")
    parser.add_argument("--out", type=Path, default=Path("docs/results"), help="where JSON goes")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    models = {name: _build(*settings) for name, settings in MODELS.items()}
    points = [Point(name, model, length) for length in LENGTHS for name, model in models.items()]
    # Round after round over all points, so that a busy minute of the machine spoils none of them.
    for _ in range(arguments.rounds):
        for point in points:
            point.measure()
    value = {
        **describe_provenance(find_device("cpu")),
        "command": f"python benchmarks/long.py --rounds {arguments.rounds}",
        "sources": SOURCES,
        "target": TARGET,
        "beams": BEAMS,
        "lengths": LENGTHS,
        "flops_per_second": _speed(),
        "models": {
            name: {
                "recipe": " ".join([MODELS[name][0], *MODELS[name][1]]),
                "points": [point.describe() for point in points if point.name == name],
            }
            for name in MODELS
        },
    }
    write_json(arguments.out / "long.json", value)
    print(arguments.out / "long.json")


def _build(name: str, words: tuple[str, ...]) -> EncoderDecoder:
    recipe = load_recipe(name, words)
    assert isinstance(recipe, Recipe)
    seed_everything(1)
    return build_model(recipe.model, source_size=VOCABULARY, target_vocab_size=VOCABULARY)


class Point:
    """A model and a length, and the best times so far."""

    def __init__(self, name: str, model: EncoderDecoder, length: int) -> None:
        self.name = name
        self.model = model
        generator = torch.Generator().manual_seed(length)
        self.source = torch.randint(4, VOCABULARY, (SOURCES, length), generator=generator)
        self.targets = torch.randint(4, VOCABULARY, (SOURCES, TARGET + 1), generator=generator)
        self.mask = torch.ones_like(self.source, dtype=torch.bool)
        self.works: dict[str, Callable[[], object]] = {"train": self._train, "search": self._search}
        self.best = dict.fromkeys(self.works, (math.inf, math.inf))

    def measure(self) -> None:
        """Train and search once; only the best counts."""
        for name, work in self.works.items():
            best, (seconds, grown) = self.best[name], _measure(work)
            self.best[name] = min(best[0], seconds), min(best[1], grown)

    def describe(self) -> dict[str, Any]:
        """Say what training and searching take."""
        found: dict[str, Any] = {"length": self.source.shape[1]}
        for name, (seconds, grown) in self.best.items():
            found[name] = {"seconds": seconds, "peak_bytes": grown}
            where = f"{self.name:>22} {found['length']:>5} {name:>6}"
            print(f"{where} {seconds:7.2f} s {grown / 2**20:9.1f} MiB")
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


def _speed() -> float:
    """Return how many operations a second one thread does at best: a large product of matrices."""
    matrix = torch.randn(1024, 1024)
    seconds = []
    for _ in range(20):
        started = time.process_time()
        matrix @ matrix
        seconds.append(time.process_time() - started)
    return float(2 * 1024**3 / min(seconds))


def _measure(work: Callable[[], object]) -> tuple[float, int]:
    """Let a copy of this process work; return its seconds and by how many bytes it grew."""
    fork = multiprocessing.get_context("fork")
    answer, question = fork.Pipe(duplex=False)
    child = fork.Process(target=_work, args=(work, question))
    child.start()
    question.close()
    try:
        seconds, grown = answer.recv()
    except EOFError:
        raise SystemExit(
            "A measurement ended before its time: is there too little memory?"
        ) from None
    child.join()
    return seconds, grown


def _work(work: Callable[[], object], question: Connection) -> None:
    before, started = _resident("VmRSS"), time.process_time()
    work()
    question.send((time.process_time() - started, _resident("VmHWM") - before))


def _resident(name: str) -> int:
    """Return the bytes of memory that this process holds (VmRSS), or held at most (VmHWM)."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="utf-8"))
    assert found is not None
    return 1024 * int(found[1])


if __name__ == "__main__":
    main()
