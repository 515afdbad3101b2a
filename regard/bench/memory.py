"""Peak memory of a contender: allocations on a GPU, growth of a process of its own on a CPU."""

import gc
import multiprocessing
import re
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch

from regard.bench.entries import Entry, build_batches, build_contender
from regard.bench.settings import BenchSettings
from regard.core.logging import logger

NUM_STEPS = 2
"""Training steps in a process: the second one also holds the state of the optimiser."""

STATUS = Path("/proc/self/status")


def free_memory(device: torch.device) -> None:
    """Free the memory of objects that are no longer used."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def start_peak(device: torch.device) -> int:
    """Start to record the peak of memory allocated on a GPU; return what is allocated now."""
    free_memory(device)
    if device.type != "cuda":
        return 0
    torch.cuda.reset_peak_memory_stats(device)
    return torch.cuda.memory_allocated(device)


def read_peak(device: torch.device, before: int) -> int | None:
    """Return the peak of memory allocated on a GPU beyond `before`; None elsewhere."""
    return torch.cuda.max_memory_allocated(device) - before if device.type == "cuda" else None


def measure_process(entry: Entry, settings: BenchSettings) -> int | None:
    """Return by how many bytes a new process grows at most when it trains an entry."""
    return grow_process(_grow, entry, settings, name=entry.contender)


def grow_process(grow: Callable[..., int], *arguments: Any, name: str) -> int | None:
    """Return the bytes that a function measures in a new process.

    Contenders in one process would share its peak. None if the system does not report it (other
    than Linux), or if the process fails.

    Args:
        grow: Function of the arguments and the number of threads, in a module.
        *arguments: Arguments that can be sent to a process.
        name: Name of the contender, for a warning.
    """
    if not STATUS.exists():
        return None
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        future = pool.submit(grow, *arguments, torch.get_num_threads())
        try:
            return future.result()
        except Exception as error:
            logger.warning("The memory of %s was not measured: %s", name, error)
            return None


def _grow(entry: Entry, settings: BenchSettings, num_threads: int) -> int:
    torch.set_num_threads(num_threads)
    batches = build_batches(entry.size, settings)
    before = status_bytes("VmRSS")
    contender = build_contender(entry, batches, settings)
    try:
        contender.run(NUM_STEPS)
    finally:
        contender.close()
    return max(0, status_bytes("VmHWM") - before)


def status_bytes(name: str) -> int:
    """Return a line of this process's status in bytes: VmRSS is resident, VmHWM its peak."""
    found = re.search(rf"{name}:\s+(\d+) kB", STATUS.read_text(encoding="utf-8"))
    assert found
    return 1024 * int(found[1])
