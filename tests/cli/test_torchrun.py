"""Commands that `torchrun` starts in several processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from regard.core.files import read_json_lines
from regard.training.checkpoint import read_weights
from tests.fixtures.runs import TINY_SETTINGS

ROOT = Path(__file__).parents[2]
WORDS = "a b c d e f g h".split()


def torchrun(*arguments, options=(), wait=True):
    """Start a command in two processes; return what it prints."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [*command, "-m", "regard", *map(str, arguments)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    if not wait:
        return process
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return output, errors


@pytest.fixture
def pairs(tmp_path):
    """Write a file of pairs: the target is the source in reverse."""
    path = tmp_path / "pairs.tsv"
    sources = [[WORDS[(n * k + k) % 8] for k in range(1, 3 + n % 5)] for n in range(400)]
    lines = {f"{' '.join(one)}\t{' '.join(reversed(one))}\n" for one in sources}
    path.write_text("".join(sorted(lines)))
    return path


def train_arguments(pairs, out, *settings):
    recipe = ("--recipe", "bahdanau2015-laptop", "--device", "cpu")
    return ("train", pairs, "--out", out, *recipe, *TINY_SETTINGS, *settings)


@pytest.mark.faults
def test_training_and_prediction_by_torchrun(tmp_path, pairs, regard):
    run = tmp_path / "run"
    output, errors = torchrun(*train_arguments(pairs, run, "train.max_steps=6"))
    # The first process alone prints and evaluates.
    assert output.count("Run folder:") == 1 and errors.count("Recipe") <= 1
    assert (run / "metrics.json").exists()
    lines = [f"{WORDS[n % 8]} {WORDS[n // 8 % 8]}\n" for n in range(4_100)]
    (tmp_path / "file.txt").write_text("".join(lines))
    together, alone = tmp_path / "together.txt", tmp_path / "alone.txt"
    arguments = ("predict", run, tmp_path / "file.txt", "--nbest", "2", "--beam", "2")
    torchrun(*arguments, "--out", together)
    assert regard(*arguments, "--out", alone).code == 0
    assert together.read_bytes() == alone.read_bytes()
    assert len(alone.read_text().splitlines()) == 8_200


def workers(process):
    """Return the processes that `torchrun` has started, in their order."""
    path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(child) for child in path.read_text().split()]


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.faults
@pytest.mark.parametrize("killed", [0, 1])
def test_a_killed_process_is_restarted_and_training_resumes(tmp_path, pairs, killed):
    run = tmp_path / "run"
    arguments = train_arguments(
        pairs, run, "train.max_steps=300", "train.validate_every=20", "train.max_epochs=0",
        "train.patience=0", "train.log_every=10",
    )  # fmt: skip
    process = torchrun(*arguments, options=("--max-restarts", "2"), wait=False)
    wait_for((run / "resume" / "training.json").exists)
    os.kill(workers(process)[killed], signal.SIGKILL)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert "Run folder:" in output
    assert f"process {killed}" in errors and "has died" in errors
    rows = read_json_lines(run / "journal.jsonl")
    steps = [row["step"] for row in rows if row["kind"] == "train"]
    assert steps == list(range(10, 301, 10))
    torchrun(*train_arguments(pairs, tmp_path / "whole", *arguments[-5:]))
    expected = read_weights(tmp_path / "whole" / "model.safetensors")
    for name, tensor in read_weights(run / "model.safetensors").items():
        assert (tensor == expected[name]).all(), name


@pytest.mark.faults
def test_a_terminated_training_stops_at_one_step_and_resumes(tmp_path, pairs):
    run = tmp_path / "run"
    settings = ("train.max_steps=60", "train.max_epochs=0", "train.patience=0")
    endless = (*settings[1:], "train.max_steps=100000")
    process = torchrun(*train_arguments(pairs, run, *endless), wait=False)
    wait_for((run / "resume" / "training.json").exists)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=120)
    assert "Stopped; nothing is lost. Resume with: regard train" in errors
    assert errors.count("Interrupted after") == 1
    assert read_json_lines(run / "journal.jsonl")[-1]["reason"] == "interrupted"


@pytest.mark.faults
def test_an_error_is_printed_once(tmp_path):
    process = torchrun("train", tmp_path / "none.tsv", "--out", tmp_path / "run", wait=False)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    assert errors.count("regard:") == 1 and "none.tsv" in errors
