"""Joining of the processes that `torchrun` has started."""

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

import torch
import torch.distributed as dist

from regard.core.errors import ConfigError, RegardError
from regard.training.distributed.monitor import Monitor
from regard.training.distributed.processes import Processes
from regard.training.distributed.replicated import Distributed
from regard.training.distributed.sharded import Sharded

Parallel = Literal["ddp", "fsdp"]

START_TIMEOUT = timedelta(minutes=30)
"""Time in which all processes must start."""
WAIT_TIMEOUT = timedelta(days=30)
"""Time that processes wait for another one, such as the first one during a validation. A process
that has died is noticed by the monitor."""


@dataclass
class _Joined:
    """The group of processes that this one has joined."""

    control: Any = None
    """Group of the exchange of values of the host; None if there is a single process."""


_joined = _Joined()


@contextmanager
def join_processes(device: str = "auto") -> Iterator[Processes]:
    """Join the processes that `torchrun` has started, during a block; without it, do nothing.

    Args:
        device: Device of the training. On GPUs, each process of a machine uses one.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) < 2 or _joined.control is not None:
        yield find_processes()
        return
    is_owner = not dist.is_initialized()
    if is_owner:
        rank, num = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        dist.init_process_group(
            _choose_backend(device),
            store=_meet(_open_store(rank), rank, num),
            rank=rank,
            world_size=num,
            timeout=START_TIMEOUT,
        )
    _joined.control = dist.new_group(backend="gloo", timeout=WAIT_TIMEOUT)
    processes = find_processes()
    host = os.environ.get("MASTER_ADDR", "localhost")
    monitor = Monitor(processes.rank, host, from_first=processes.from_first)
    processes.wait()  # All processes are connected.
    try:
        yield processes
        processes.wait()
        monitor.close()
    except RegardError as error:
        monitor.close(str(error))
        raise
    except BaseException as error:
        if isinstance(error, RuntimeError):
            monitor.wait()  # An exchange fails if another process has died.
        monitor.close(f"{type(error).__name__}: {error}")
        raise
    finally:
        _joined.control = None
        if is_owner:
            dist.destroy_process_group()


def find_processes(parallel: Parallel = "ddp") -> Processes:
    """Return the processes that this one has joined, or a single process.

    Args:
        parallel: What several processes hold: the whole model each ('ddp'), or a shard of each
            block ('fsdp').
    """
    if _joined.control is None:
        return Processes()
    return (Sharded if parallel == "fsdp" else Distributed)(_joined.control)


def _open_store(rank: int) -> Any:
    """Connect to the store of the processes, which `torchrun` or the first process serves."""
    return dist.TCPStore(  # type: ignore[attr-defined]
        os.environ["MASTER_ADDR"],
        int(os.environ["MASTER_PORT"]),
        is_master=rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True",
        timeout=START_TIMEOUT,
        wait_for_workers=False,
    )


def _meet(store: Any, rank: int, num: int) -> Any:
    """Return a part of the store for this start of the processes.

    `torchrun` may keep its store when it restarts processes, with the addresses of those that have
    died. Here, the first process names a part of the store, and confirms it to each other process;
    without confirmation, a process has read the name of an earlier start.

    Args:
        store: The store.
        rank: Number of this process.
        num: Number of processes.
    """
    own = secrets.token_hex(8)
    if rank == 0:
        store.set("regard", own)
        for other in range(1, num):
            found = store.get(f"{own}/{other}").decode()  # waits for the process
            store.set(f"{own}/{other}/{found}", "")
        return dist.PrefixStore(own, store)  # type: ignore[attr-defined]
    while True:
        first = store.get("regard").decode()
        store.set(f"{first}/{rank}", own)
        try:
            store.wait([f"{first}/{rank}/{own}"], timedelta(seconds=1))
        except RuntimeError:  # timed out
            continue
        return dist.PrefixStore(first, store)  # type: ignore[attr-defined]


def _choose_backend(device: str) -> str:
    """Select a GPU for this process, if there are GPUs, and return the backends of the group."""
    if device == "cpu" or not torch.cuda.is_available():
        return "gloo"
    if device not in ("auto", "cuda"):
        raise ConfigError(
            f"`device` must be 'auto', 'cuda' or 'cpu' for several processes, but is '{device}'. "
            "Each process of a machine uses one GPU."
        )
    rank, num = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if rank >= num:
        raise ConfigError(
            f"There must be at most one process per GPU, but process {rank} of this machine has "
            f"none of its {num}. Start fewer processes per machine, or use --device cpu."
        )
    torch.cuda.set_device(rank)
    return "cpu:gloo,cuda:nccl"


def find_launch() -> str:
    """Return the name of the launch by `torchrun`, the same one after a restart; empty without."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return ""
    name = os.environ["TORCHELASTIC_RUN_ID"]
    return name if name != "none" else f"{socket.gethostname()}-{os.getppid()}"
