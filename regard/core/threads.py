"""Threads of numerical libraries: cores of this process, and settings made before torch loads."""

import os
import sys
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")

DEFAULTS = {
    # Threads that wait for each other sleep instead of spinning: training slows down less beside
    # other programs, and more on idle cores (docs/log.md).
    "OMP_WAIT_POLICY": "passive",
    "KMP_BLOCKTIME": "0",
    # Operations that Apple GPUs lack run on the CPU.
    "PYTORCH_ENABLE_MPS_FALLBACK": "1",
}
"""Environment variables that OpenMP and torch read once, when torch is imported."""


def set_environment() -> None:
    """Set `DEFAULTS` unless torch is loaded already; the user's own values are kept."""
    if "torch" not in sys.modules:
        for name, value in DEFAULTS.items():
            os.environ.setdefault(name, value)


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
