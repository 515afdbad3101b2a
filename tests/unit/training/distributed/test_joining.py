"""Start of several processes: backends, launches, the store and the monitor."""

import socket
import threading
import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

from regard.core.errors import ConfigError
from regard.training.distributed import joining
from regard.training.distributed.joining import find_launch, find_processes, join_processes
from regard.training.distributed.monitor import Monitor


def test_without_torchrun_there_is_one_process(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with join_processes() as processes:
        assert (processes.rank, processes.num, processes.is_first) == (0, 1, True)
        assert processes.from_first(lambda: "value") == "value"
        assert not processes.is_restarted()


def test_a_gpu_per_process_is_selected(monkeypatch):
    chosen = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert joining._choose_backend("auto") == "cpu:gloo,cuda:nccl"
    assert chosen == [1]
    assert joining._choose_backend("cpu") == "gloo"
    with pytest.raises(ConfigError, match="`device` must be 'auto', .* but is 'cuda:1'"):
        joining._choose_backend("cuda:1")
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(ConfigError, match="process 2 of this machine has none of its 2"):
        joining._choose_backend("auto")


def test_a_launch_has_the_same_name_after_a_restart(monkeypatch):
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    assert find_launch() == ""
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    assert find_launch() == find_launch() != ""
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "mine")
    assert find_launch() == "mine"


def test_processes_do_not_meet_at_the_part_of_an_earlier_start():
    store = dist.HashStore()
    store.set_timeout(timedelta(seconds=20))
    store.set("regard", "earlier")
    store.set("earlier/1/nonce", "")
    names = {}

    def meet(rank):
        part = joining._meet(store, rank, 2)
        if rank:
            part.set("rank", "1")
        names[rank] = part.get("rank")

    second = threading.Thread(target=meet, args=(1,))
    second.start()
    time.sleep(0.2)  # The second process reads the name of the earlier start first.
    meet(0)
    second.join()
    assert names == {0: b"1", 1: b"1"}


def test_a_stranger_does_not_end_the_processes(monkeypatch):
    ended = []
    monkeypatch.setattr("regard.training.distributed.monitor._end", ended.append)
    monitor = Monitor(0, "localhost", from_first=lambda compute: compute())
    port = monitor._server.getsockname()[1]
    for message in (
        b"GET / HTTP/1.1\n\n",
        b"[1]\n",
        b'{"token": "none", "rank": 1}\n',
        b"\xff" * 99,
    ):
        with socket.create_connection(("localhost", port)) as stranger:
            stranger.sendall(message)
    time.sleep(0.3)
    assert monitor._thread.is_alive()
    monitor.close()
    monitor._thread.join(5)
    assert not monitor._thread.is_alive() and ended == []
    assert find_processes().num == 1
