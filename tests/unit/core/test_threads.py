import os
import sys

import pytest

from regard.core import threads


def test_environment_is_set_before_torch_is_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    monkeypatch.setenv("KMP_BLOCKTIME", "7")
    threads.set_environment()
    assert os.environ["OMP_WAIT_POLICY"] == "passive"
    assert os.environ["KMP_BLOCKTIME"] == "7"  # set by the user


def test_environment_is_left_alone_after_torch_is_imported(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", sys)
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    threads.set_environment()
    assert "OMP_WAIT_POLICY" not in os.environ


@pytest.mark.parametrize(
    ("files", "num"),
    [
        ({}, 8),
        ({"cpu.max": "max 100000\n"}, 8),
        ({"cpu.max": "350000 100000\n"}, 3),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu.max": "1600000 100000\n"}, 8),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 8),
        ({"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 2),
    ],
)
def test_cores_are_limited_by_the_quota_of_a_container(tmp_path, monkeypatch, files, num):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(threads, "CGROUP", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(8)), raising=False)
    assert threads.num_cores() == num
