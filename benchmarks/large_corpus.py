"""Memory and time of a training on many generated pairs (docs/large-corpora.md).

python benchmarks/large_corpus.py write 10000000 pairs.tsv    # random pairs, 115 bytes each
python benchmarks/large_corpus.py train pairs.tsv 100         # steps; prints a line of JSON
python benchmarks/large_corpus.py compare pairs.tsv 20000     # throughput on all and on some pairs
"""

import json
import sys
import tempfile
import threading
import time
from itertools import islice
from pathlib import Path

import numpy as np
import torch

import regard
from regard.tasks.generation.task import Predictor
from regard.training import loop
from regard.training.prefetch import prefetch

NUM_WORDS = 20_000
CHUNK = 100_000
NUM_ROUNDS, STEPS_PER_ROUND = 6, 10
SETTINGS = (
    "data.source.kind=bpe",
    "data.source.vocab_size=8000",
    "train.max_epochs=0",
    "train.validate_every=100000",
)


def write_pairs(num: int, path: Path) -> None:
    """Write pairs of 5 to 15 random words, of which the target is a word-by-word translation.

    Words are syllables; their frequencies decrease with their rank, as those of a language.
    """
    generator = np.random.default_rng(1)
    sources, targets = (_make_words(generator) for _ in range(2))
    weights = 1 / (np.arange(NUM_WORDS) + 10.0)
    cumulative = np.cumsum(weights / weights.sum())
    with path.open("w", encoding="utf-8") as file:
        for start in range(0, num, CHUNK):
            lengths = generator.integers(5, 16, min(CHUNK, num - start))
            words = np.searchsorted(cumulative, generator.random(int(lengths.sum())))
            for row in np.split(words.clip(max=NUM_WORDS - 1), np.cumsum(lengths)[:-1]):
                source, target = (" ".join(side[row]) for side in (sources, targets))
                file.write(f"{source}\t{target}\n")


def _make_words(generator: np.random.Generator) -> np.ndarray:
    syllables = [consonant + vowel for consonant in "bdfghklmnprstvz" for vowel in "aeiou"]
    words: dict[str, None] = {}
    while len(words) < NUM_WORDS:
        words["".join(generator.choice(syllables, generator.integers(1, 4)))] = None
    return np.array([*words], dtype=object)


class MemoryPeaks(threading.Thread):
    """Largest resident memory of this process before, during and after training, in MiB."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.phase = "preparation"
        self.peaks: dict[str, dict[str, int]] = {}

    def run(self) -> None:
        """Read the memory of this process every 50 ms."""
        while True:
            peaks = self.peaks.setdefault(self.phase, {})
            for name, value in read_kib(Path("/proc/self/status")).items():
                if name in ("VmRSS", "RssAnon", "RssFile"):
                    peaks[name] = max(peaks.get(name, 0), value // 1024)
            time.sleep(0.05)


def train(data: str, steps: int) -> None:
    """Train a small transformer for some steps, and print memory, times and throughput."""
    memory, started, seconds = MemoryPeaks(), time.perf_counter(), {}
    memory.start()
    run = loop.Trainer.run

    def observed_run(trainer: loop.Trainer) -> loop.Summary:
        memory.phase = "training"
        seconds["preparation"] = time.perf_counter() - started
        summary = run(trainer)
        memory.phase = "evaluation"
        return summary

    loop.Trainer.run = observed_run  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as folder:
        request = regard.Request(
            data=data,
            recipe="vaswani2017-tiny",
            settings=(*SETTINGS, f"train.max_steps={steps}"),
            out=Path(folder, "run"),
            device="cpu",
        )
        progress = regard.train(request).summary.progress
    rollup = read_kib(Path("/proc/self/smaps_rollup"))
    found = {
        "preparation_seconds": round(seconds["preparation"], 1),
        "tokens_per_second": round(progress.tokens / progress.seconds, 1),
        "peak_mib": memory.peaks,
        "VmHWM_mib": read_kib(Path("/proc/self/status"))["VmHWM"] // 1024,
        "pss_mib": {name: rollup[name] // 1024 for name in ("Pss", "Pss_Anon", "Pss_File")},
    }
    print(json.dumps(found))


def read_kib(path: Path) -> dict[str, int]:
    """Return the values in KiB of a file of `/proc`, by name."""
    lines = (line.split() for line in path.read_text().splitlines())
    return {line[0].rstrip(":"): int(line[1]) for line in lines if line[-1] == "kB"}


def compare(data: str, num: int) -> None:
    """Train on a corpus and on `num` of its pairs in memory, in turns; print the best rounds."""
    request = regard.Request(data=data, recipe="vaswani2017-tiny", settings=SETTINGS, device="cpu")
    recipe, splits = request.resolve()
    device = torch.device("cpu")
    task = Predictor.prepare(recipe, splits.train, device=device)
    optimizer = torch.optim.Adam(task.model.parameters(), fused=True)
    rounds: dict[str, list[dict[str, float]]] = {"large": [], "small": []}
    batches = {
        name: prefetch(task.training_batches(examples).epoch(0))
        for name, examples in (("large", splits.train), ("small", splits.train[:num]))
    }
    for number in range(NUM_ROUNDS + 1):
        for name, found in rounds.items():
            started, cpu, tokens = time.perf_counter(), time.process_time(), 0
            for batch in islice(batches[name], STEPS_PER_ROUND):
                optimizer.zero_grad()
                task.loss(batch).total.backward()
                optimizer.step()
                tokens += batch.num_target_tokens
            seconds = time.perf_counter() - started, time.process_time() - cpu
            if number:  # The first round warms up.
                found.append({"tokens": tokens, "wall": seconds[0], "cpu": seconds[1]})
    best = {
        f"tokens_per_{clock}_second_{name}": round(max(one["tokens"] / one[clock] for one in found))
        for name, found in rounds.items()
        for clock in ("wall", "cpu")
    }
    print(json.dumps(best))


COMMANDS = {
    "write": lambda num, path: write_pairs(int(num), Path(path)),
    "train": lambda data, steps: train(data, int(steps)),
    "compare": lambda data, num: compare(data, int(num)),
}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
