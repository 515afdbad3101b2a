"""Throughput of training and prediction by one and by several processes (docs/scaling.md).

python benchmarks/processes.py train multi30k --recipe vaswani2017-small    # target tokens/s
python benchmarks/processes.py predict RUN FILE                             # sources per second

The contenders take turns, and each is reported by its best round. The machine must be idle.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from statistics import fmean

import torch

from regard.core.files import read_json_lines
from regard.runs.folder import TRAINING_LOG
from regard.runs.provenance import describe_provenance

CONTENDERS = {"1 process, 1 thread": (1, 1), "1 process, 2 threads": (1, 2), "2 processes": (2, 1)}
"""Numbers of processes and of threads of each process."""

Round = tuple[float, str]
"""Throughput, and a checksum of the output if it must be the same for all."""

NUM_ROUNDS = 3
ENDLESS = ("train.max_steps=100000", "train.max_epochs=0", "train.patience=0")
NUM_ROWS, STEPS_PER_ROW = 4, 5
"""Rows of the training log, of which the first is not counted."""


def command(num_processes: int, *words: str) -> list[str]:
    """Return the command that starts `regard` in some processes."""
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node", str(num_processes)]
    return [sys.executable, *(launcher if num_processes > 1 else []), "-m", "regard", *words]


def train(folder: Path, words: list[str], size: tuple[int, int]) -> Round:
    """Train for some steps; return the target tokens per second after the first ones."""
    run, (num_processes, threads) = folder / "run", size
    settings = (f"train.log_every={STEPS_PER_ROW}", "train.validate_every=100000", *ENDLESS)
    options = ("--device", "cpu", "--threads", str(threads), "--out", str(run), *settings)
    with (folder / "output").open("w") as output:
        process = subprocess.Popen(
            command(num_processes, "train", *words, *options), stdout=output, stderr=output
        )
        rows: list[dict[str, float]] = []
        # The validation and the evaluation at the end would take longer than the steps.
        while len(rows) < NUM_ROWS:
            time.sleep(0.2)
            if process.poll() is not None:
                raise SystemExit((folder / "output").read_text())
            rows = [row for row in read_json_lines(run / TRAINING_LOG) if row["kind"] == "train"]
        process.terminate()
        process.wait()
    return fmean(row["tokens_per_second"] for row in rows[1:]), ""


def predict(folder: Path, words: list[str], size: tuple[int, int]) -> Round:
    """Predict the lines of a file; return the sources per second of the whole command."""
    run, file, *rest = words
    out, (num_processes, threads) = folder / "predictions", size
    options = ("--device", "cpu", "--threads", str(threads), "--out", str(out), "--quiet")
    started = time.perf_counter()
    started_words = command(num_processes, "predict", run, file, *rest, *options)
    subprocess.run(started_words, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - started
    return out.read_bytes().count(b"\n") / seconds, sha256(out.read_bytes()).hexdigest()


def measure(kind: Callable[[Path, list[str], tuple[int, int]], Round], words: list[str]) -> None:
    """Let all contenders take turns; print their rounds as a line of JSON."""
    found: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    checksums = set()
    for _ in range(NUM_ROUNDS):
        for name, size in CONTENDERS.items():
            with tempfile.TemporaryDirectory() as folder:
                rate, checksum = kind(Path(folder), words, size)
            checksums.add(checksum)
            found[name].append(round(rate, 1))
            print(name, found[name][-1], file=sys.stderr)
    if len(checksums) > 1:
        raise SystemExit("The predictions differ.")
    best = {name: max(rates) for name, rates in found.items()}
    print(json.dumps({**describe_provenance(torch.device("cpu")), "rounds": found, "best": best}))


if __name__ == "__main__":
    measure({"train": train, "predict": predict}[sys.argv[1]], sys.argv[2:])
