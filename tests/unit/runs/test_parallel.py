import os
import signal
import threading
import time
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from regard.core.errors import RegardError
from regard.runs import parallel
from regard.runs.folder import METRICS, REPORT, TRAINING_LOG, WEIGHTS
from regard.runs.parallel import train_in_parallel

BRIEFLY = ("train.max_steps=2", "train.validate_every=1")


@pytest.fixture
def requests_of(reverse_files, tmp_path):
    """Function from the settings of two runs to their requests."""

    def build(first, second):
        return [
            reverse_files.request(tmp_path / "first", *first),
            reverse_files.request(tmp_path / "second", *second),
        ]

    return build


def press_ctrl_c_when_trained(folder):
    """Interrupt this process once a run has started training."""

    def work():
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (folder / TRAINING_LOG).exists():
            time.sleep(0.05)
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=work, daemon=True).start()


def test_every_request_is_trained_and_gets_a_report(requests_of, monkeypatch):
    monkeypatch.setattr(parallel, "num_cores", lambda: 2)
    requests = requests_of(BRIEFLY, BRIEFLY)
    assert train_in_parallel(requests)
    for request in requests:
        assert (request.out / METRICS).exists()
        assert (request.out / REPORT).exists()


def test_parallel_training_equals_sequential_training(requests_of, monkeypatch):
    in_parallel, sequential = requests_of(BRIEFLY, BRIEFLY)
    monkeypatch.setattr(parallel, "num_cores", lambda: 1)
    assert train_in_parallel([in_parallel])
    monkeypatch.setattr(parallel, "num_cores", lambda: 0)
    assert train_in_parallel([sequential])
    first, second = (load_file(one.out / WEIGHTS) for one in (in_parallel, sequential))
    assert all(torch.equal(first[name], second[name]) for name in second)


def test_interrupted_trainings_can_be_resumed(requests_of, monkeypatch):
    monkeypatch.setattr(parallel, "num_cores", lambda: 2)
    endless = ("train.max_epochs=0", "train.max_steps=1000000", "train.log_every=1")
    requests = requests_of(endless, endless)
    press_ctrl_c_when_trained(requests[1].out)
    assert not train_in_parallel(requests)
    resumed = [replace(request.resume_if_started(), settings=BRIEFLY) for request in requests]
    assert any(request.is_resumed for request in resumed)
    assert train_in_parallel(resumed)


def test_failure_of_one_is_reported_and_stops_the_others(requests_of, monkeypatch, capfd):
    monkeypatch.setattr(parallel, "num_cores", lambda: 2)
    endless = ("train.max_epochs=0", "train.max_steps=1000000")
    requests = requests_of(endless, ("train.max_stpes=1",))
    with pytest.raises(RegardError, match="Training second failed with exit code 2"):
        train_in_parallel(requests)
    assert "second: `train.max_stpes` is not a setting" in capfd.readouterr().err
    assert not (requests[0].out / METRICS).exists()


class EndsLate:
    """Process whose sentinel is ready before its exit code is set."""

    sentinel = 1

    def __init__(self, exit_codes):
        self.exit_codes = iter(exit_codes)
        self.exitcode = None

    def is_alive(self):
        self.exitcode = next(self.exit_codes)
        return self.exitcode is None


def test_late_exit_code_of_a_failure_is_noticed(monkeypatch):
    waited = []
    monkeypatch.setattr(parallel, "wait", waited.append)
    endless = EndsLate([None, None])
    endless.sentinel = 2
    parallel._wait_for_all([EndsLate([None, 2]), endless])
    assert waited == [[1, 2]]
