"""Memory and time of a training on many generated pairs (docs/large-corpora.md).

python benchmarks/large_corpus.py write 10000000 pairs.tsv    # random pairs, 115 bytes each
python benchmarks/large_corpus.py train pairs.tsv 100         # steps; prints a line of JSON
"""

import json
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import regard
from regard.training import loop

NUM_WORDS = 20_000
CHUNK = 100_000
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
    """Largest resident memory of this process before and during training, in MiB."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.phase = "preparation"
        self.peaks: dict[str, dict[str, int]] = {}

    def run(self) -> None:
        """Read the memory of this process every 50 ms."""
        while True:
            peaks = self.peaks.setdefault(self.phase, {})
            for line in Path("/proc/self/status").read_text().splitlines():
                name, _, value = line.partition(":")
                if name in ("VmRSS", "RssAnon", "RssFile"):
                    peaks[name] = max(peaks.get(name, 0), int(value.split()[0]) // 1024)
            time.sleep(0.05)


def train(data: str, steps: int) -> None:
    """Train a small transformer for some steps, and print memory, times and throughput."""
    memory, started, seconds = MemoryPeaks(), time.perf_counter(), {}
    memory.start()
    run = loop.Trainer.run

    def observed_run(trainer: loop.Trainer) -> loop.Summary:
        memory.phase = "training"
        seconds["preparation"] = time.perf_counter() - started
        return run(trainer)

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
    found = {
        "preparation_seconds": round(seconds["preparation"], 1),
        "tokens_per_second": round(progress.tokens / progress.seconds, 1),
        "peak_mib": memory.peaks,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    command, first, second = sys.argv[1:]
    if command == "write":
        write_pairs(int(first), Path(second))
    else:
        train(first, int(second))
