import os
import sys

import pytest

from regard.core import threads


@pytest.fixture
def environment(monkeypatch):
    """An empty environment before torch is imported."""
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(os, "environ", {})
    return os.environ


def test_environment_is_set_before_torch_is_imported(environment):
    environment["KMP_BLOCKTIME"] = "7"
    threads.set_environment()
    assert environment["GOMP_SPINCOUNT"] == "1000"
    assert environment["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "128"
    assert environment["KMP_BLOCKTIME"] == "7"  # set by the user


def test_wait_policy_of_the_user_is_kept(environment):
    environment["OMP_WAIT_POLICY"] = "active"
    threads.set_environment()
    assert "GOMP_SPINCOUNT" not in environment


def test_environment_is_left_alone_after_torch_is_imported(monkeypatch, environment):
    monkeypatch.setitem(sys.modules, "torch", sys)
    threads.set_environment()
    assert "GOMP_SPINCOUNT" not in environment


@pytest.mark.parametrize(("given", "num"), [({}, "4"), ({"OMP_NUM_THREADS": "3"}, "3")])
def test_processes_of_torchrun_share_the_cores(monkeypatch, environment, given, num):
    monkeypatch.setattr(threads, "num_cores", lambda: 8)
    # torchrun sets one thread if nothing is set.
    environment.update({"LOCAL_WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"} | given)
    threads.set_environment()
    assert environment["OMP_NUM_THREADS"] == num


@pytest.mark.parametrize(("quota", "num"), [(2.0, "2"), (None, None)])
def test_quota_of_a_container_sets_the_number_of_threads(monkeypatch, environment, quota, num):
    monkeypatch.setattr(threads, "_quota", lambda: quota)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(8), raising=False)
    threads.set_environment()
    assert environment.get("OMP_NUM_THREADS") == num


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
