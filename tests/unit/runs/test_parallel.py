import os
import signal
import threading
import time
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from regard.core.errors import RegardError
from regard.runs import parallel as together
from regard.runs.folder import METRICS, REPORT, TRAINING_LOG, WEIGHTS
from regard.runs.parallel import train_in_parallel

BRIEFLY = ("train.max_steps=2", "train.validate_every=1")


@pytest.fixture
def requests_of(reverse_files, tmp_path):
    """Settings of two runs to what a person asks."""

    def ask(first, second):
        return [
            reverse_files.request(tmp_path / "first", *first),
            reverse_files.request(tmp_path / "second", *second),
        ]

    return ask


def press_ctrl_c_when_trained(folder):
    """Interrupt this process, and no other, once a run has begun to train."""

    def work():
        until = time.monotonic() + 60
        while time.monotonic() < until and not (folder / TRAINING_LOG).exists():
            time.sleep(0.05)
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=work, daemon=True).start()


def test_every_request_is_trained_and_reported(requests_of, monkeypatch):
    monkeypatch.setattr(together, "num_cores", lambda: 2)
    requests = requests_of(BRIEFLY, BRIEFLY)
    assert train_in_parallel(requests)
    for request in requests:
        assert (request.out / METRICS).exists()
        assert (request.out / REPORT).exists()


def test_side_by_side_equals_one_after_the_other(requests_of, monkeypatch):
    side_by_side, alone = requests_of(BRIEFLY, BRIEFLY)
    monkeypatch.setattr(together, "num_cores", lambda: 1)
    assert train_in_parallel([side_by_side])
    monkeypatch.setattr(together, "num_cores", lambda: 0)
    assert train_in_parallel([alone])
    first, second = (load_file(one.out / WEIGHTS) for one in (side_by_side, alone))
    assert all(torch.equal(first[name], second[name]) for name in second)


def test_interrupt_stops_every_training_so_that_it_can_go_on(requests_of, monkeypatch):
    monkeypatch.setattr(together, "num_cores", lambda: 2)
    endless = ("train.max_epochs=0", "train.max_steps=1000000", "train.log_every=1")
    requests = requests_of(endless, endless)
    press_ctrl_c_when_trained(requests[1].out)
    assert not train_in_parallel(requests)
    resumed = [replace(request.resume_if_started(), settings=BRIEFLY) for request in requests]
    assert any(request.is_resumed for request in resumed)
    assert train_in_parallel(resumed)


def test_failure_of_one_is_told_and_stops_the_others(requests_of, monkeypatch, capfd):
    monkeypatch.setattr(together, "num_cores", lambda: 2)
    endless = ("train.max_epochs=0", "train.max_steps=1000000")
    requests = requests_of(endless, ("train.max_stpes=1",))
    with pytest.raises(RegardError, match="Training second failed with exit code 2"):
        train_in_parallel(requests)
    assert "second: `train.max_stpes` is not a setting" in capfd.readouterr().err
    assert not (requests[0].out / METRICS).exists()


class EndsLate:
    """Its sentinel says that it has ended before its exit code is known."""

    sentinel = 1

    def __init__(self, exit_codes):
        self.exit_codes = iter(exit_codes)
        self.exitcode = None

    def is_alive(self):
        self.exitcode = next(self.exit_codes)
        return self.exitcode is None


def test_failure_whose_exit_code_comes_late_is_noticed(monkeypatch):
    waited = []
    monkeypatch.setattr(together, "wait", waited.append)
    endless = EndsLate([None, None])
    endless.sentinel = 2
    together._await_all([EndsLate([None, 2]), endless])
    assert waited == [[1, 2]]
