"""Threads of numerical libraries: cores of this process, and settings made before torch loads."""

import os
import sys
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")

DEFAULTS = {
    # Threads that wait for each other spin for a few microseconds, then sleep. By default they spin
    # for milliseconds, and beside another program training slows down to a fifth (docs/log.md).
    "GOMP_SPINCOUNT": "1000",
    "KMP_BLOCKTIME": "0",
    # Large tensors are in large pages where the kernel allows it, so that new memory costs fewer
    # page faults: logits of a batch alone have tens of thousands of small pages.
    "THP_MEM_ALLOC_ENABLE": "1",
    # oneDNN keeps the code of this many operations of different shapes, more than a step of most
    # models has. By default it keeps 1,024: hundreds of MiB, as few batches of a text have the same
    # shape.
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "128",
    # Operations that Apple GPUs lack run on the CPU.
    "PYTORCH_ENABLE_MPS_FALLBACK": "1",
}
"""Environment variables that OpenMP and torch read once, when torch is imported."""


def set_environment() -> None:
    """Set `DEFAULTS` unless torch is loaded already; the user's own values are kept.

    In a container, the number of threads is that of its cores, which torch does not know. Several
    processes of a machine, started by `torchrun`, share the cores.
    """
    if "torch" in sys.modules:
        return
    for name, value in DEFAULTS.items():
        if name != "GOMP_SPINCOUNT" or "OMP_WAIT_POLICY" not in os.environ:
            os.environ.setdefault(name, value)
    num_processes = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if num_processes > 1 and os.environ.get("OMP_NUM_THREADS", "1") == "1":
        # `torchrun` sets one thread per process if nothing is set.
        os.environ["OMP_NUM_THREADS"] = str(max(1, num_cores() // num_processes))
    elif _quota() is not None:
        os.environ.setdefault("OMP_NUM_THREADS", str(num_cores()))


def num_cores() -> int:
    """Return the number of cores available to this process: its affinity and its quota."""
    if hasattr(os, "sched_getaffinity"):
        num = len(os.sched_getaffinity(0))
    else:
        num = os.cpu_count() or 1
    quota = _quota()
    return num if quota is None else max(1, min(num, int(quota)))


def _quota() -> float | None:
    """Return the cores that a container may use, or None if they are not limited."""
    try:
        # Version 2: "200000 100000" is two cores, "max 100000" no limit.
        limit, period = (CGROUP / "cpu.max").read_text(encoding="utf-8").split()
    except (OSError, ValueError):
        try:
            limit, period = (
                (CGROUP / "cpu" / f"cpu.cfs_{name}_us").read_text(encoding="utf-8").strip()
                for name in ("quota", "period")
            )
        except OSError:
            return None
    try:
        return int(limit) / int(period) if int(limit) > 0 else None
    except (ValueError, ZeroDivisionError):
        return None
