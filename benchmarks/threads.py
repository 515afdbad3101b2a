"""Throughput of training on 2 cores by threads and waiting, idle and beside other programs.

python benchmarks/threads.py small bf16          # prints a table: median target tokens per second
python benchmarks/threads.py bahdanau2015 fp32 --seconds 6 --rounds 3

Every setting is a process of its own, since OpenMP reads its variables once. The settings train in
turns: alone, beside one and two endless loops, and two trainings side by side (their sum).
"""

import argparse
import os
import subprocess
import sys
import time
from statistics import median

from components import table

from regard.bench.entries import OURS, Entry, build_batches, build_contender
from regard.bench.settings import BenchSettings
from regard.core.device import find_device

SETTINGS = {
    "2 threads, spin count 1,000 (default)": {"OMP_NUM_THREADS": "2"},
    "2 threads, OpenMP's default": {"OMP_NUM_THREADS": "2", "GOMP_SPINCOUNT": "300000"},
    "2 threads, `OMP_WAIT_POLICY=passive`": {"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive"},
    "1 thread": {"OMP_NUM_THREADS": "1"},
}
LOADS = {"idle": (0, 1), "1 busy": (1, 1), "2 busy": (2, 1), "2 trainings": (0, 2)}
"""Number of endless loops and of trainings."""
LOOP = [sys.executable, "-c", "while True: pass"]

Worker = subprocess.Popen[str]


def main() -> None:
    """Measure all settings in turns and print their table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("size")
    parser.add_argument("precision")
    parser.add_argument("--seconds", type=float, default=5.0, help="time of a turn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        train_on_request(options.size, options.precision)
        return
    words = [options.size, options.precision, "--worker"]
    workers = {name: [start(words, extra) for _ in range(2)] for name, extra in SETTINGS.items()}
    found: dict[str, dict[str, list[float]]] = {name: {} for name in SETTINGS}
    for _ in range(options.rounds):
        for load, (num_loops, num_trainings) in LOADS.items():
            loops = [subprocess.Popen(LOOP) for _ in range(num_loops)]
            for name, pair in workers.items():
                speed = measure(pair[:num_trainings], options.seconds)
                found[name].setdefault(load, []).append(speed)
            for loop in loops:
                loop.kill()
                loop.wait()
    for pair in workers.values():
        for worker in pair:
            worker.kill()
            worker.wait()
    rows = [
        (name, *(f"{median(speeds):,.0f}" for speeds in by_load.values()))
        for name, by_load in found.items()
    ]
    print(table((f"{options.size} {options.precision}, tokens/s", *LOADS), rows))


def start(words: list[str], extra: dict[str, str]) -> Worker:
    """Start a training that waits for its turns, with a setting of threads."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("OMP", "GOMP"))}
    command = [sys.executable, __file__, *words]
    pipe = subprocess.PIPE
    worker = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env={**kept, **extra})
    _read(worker)
    return worker


def measure(workers: list[Worker], seconds: float) -> float:
    """Let trainings run at the same time; return the sum of their tokens per second."""
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(f"{seconds}\n")
        worker.stdin.flush()
    return sum(map(_read, workers))


def _read(worker: Worker) -> float:
    assert worker.stdout is not None
    return float(worker.stdout.readline())


def train_on_request(size: str, precision: str) -> None:
    """Train for the seconds of each line of standard input; print the tokens per second."""
    settings = BenchSettings(device=find_device("cpu"), peers=(), precision=precision)  # type: ignore[arg-type]
    batches = build_batches(size, settings)
    trainer = build_contender(Entry(size, OURS, settings.precision), batches, settings)
    trainer.run(3)
    print(0, flush=True)
    for line in sys.stdin:
        started, num = time.perf_counter(), 0
        while time.perf_counter() - started < float(line):
            trainer.run(1)
            num += 1
        speed = num * batches.tokens_per_batch / (time.perf_counter() - started)
        print(speed, flush=True)


if __name__ == "__main__":
    main()
