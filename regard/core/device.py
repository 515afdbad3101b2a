"""Device, precision, threads, memory, seeds and a description of the hardware."""

import ctypes
import platform
import random
import sys
from functools import cache
from typing import Any, Literal

import torch

from regard.core.errors import ConfigError
from regard.core.tables import one_of
from regard.core.threads import num_cores

Precision = Literal["auto", "fp32", "bf16"]

MAX_THREADS = 1_024
"""Maximum number of threads; torch accepts more, and fails when it starts them."""

ACCELERATORS = ("cuda", "xpu", "mps")
"""Types of devices named in messages; those of extensions of torch are found as well."""


def find_device(name: str = "auto") -> torch.device:
    """Return the device that torch calls `name`; raise `ConfigError` if it cannot be used.

    `auto` selects a CUDA GPU or the CPU. Other devices are selected by name only, since this
    package is not tested on them.
    """
    if name == "auto":
        name = "cuda" if _num_devices("cuda") else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(_unknown(name)) from None
    if (device.index or 0) >= _num_devices(device.type):
        raise ConfigError(_unknown(name) + _why_missing(device.type))
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ConfigError(
            f"`device` is '{name}', which fails: {reason} Use --device cpu."
        ) from None
    return device


def _num_devices(kind: str) -> int:
    """Return the number of usable devices of a type."""
    if kind == "cpu":
        return 1
    module: Any = getattr(torch, kind, None)
    if not hasattr(module, "is_available") or not module.is_available():
        return 0
    return int(module.device_count())


def _unknown(name: str) -> str:
    found = [f"{kind}:{i}" for kind in ACCELERATORS for i in range(_num_devices(kind))]
    return f"`device` must be {one_of(['auto', 'cpu', *found])} on this machine, but is '{name}'."


def _why_missing(kind: str) -> str:
    """Return why there is no device of a type; an empty string if there are some."""
    if kind == "cuda" and torch.version.cuda is None:
        return " The installed torch is a build without CUDA."
    return "" if _num_devices(kind) else f" The installed torch finds no '{kind}' device."


def set_threads(num: int) -> None:
    """Set the number of threads of a torch operation on the CPU."""
    if not 1 <= num <= MAX_THREADS:
        raise ConfigError(f"`threads` must be 1 to {MAX_THREADS:,}, but is {num}.")
    torch.set_num_threads(num)


def set_own_threads(num: int) -> None:
    """Set the number of threads of a torch operation that the calling thread computes."""
    # The first query sets the number of a new thread to the one that any thread has set last.
    torch.get_num_threads()
    torch.set_num_threads(num)


def find_dtype(precision: Precision, device: torch.device) -> torch.dtype:
    """Return the dtype of matrix products; `auto` selects bf16 where it is native."""
    if precision == "auto":
        return torch.bfloat16 if has_native_bf16(device) else torch.float32
    return torch.bfloat16 if precision == "bf16" else torch.float32


def has_native_bf16(device: torch.device) -> bool:
    """Return whether the device multiplies bf16 matrices in hardware."""
    if device.type == "cpu":
        return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
    # torch.mps and most extensions have no such function; float32 works on all devices.
    is_supported = getattr(getattr(torch, device.type), "is_bf16_supported", None)
    return bool(is_supported and is_supported())


def sum_dtype(device: torch.device) -> torch.dtype:
    """Return the dtype of long sums: float64, or float32 on Apple GPUs, which have no float64."""
    return torch.float32 if device.type == "mps" else torch.float64


def seed_everything(seed: int) -> None:
    """Seed every random number generator of this package."""
    random.seed(seed)
    torch.manual_seed(seed)


def describe_hardware(device: torch.device) -> str:
    """Return a short description of the hardware."""
    bf16 = ", native bf16" if has_native_bf16(device) else ""
    if device.type == "cpu":
        return f"{_processor()}, {num_cores()} cores{bf16}"
    device_name = getattr(getattr(torch, device.type), "get_device_name", None)
    if device_name is None:
        return f"{_processor()}, {device.type}"
    return str(device_name(device))


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def release_memory() -> None:
    """Return freed memory to the operating system, on Linux with glibc; elsewhere do nothing.

    The C library keeps freed blocks for later ones of a similar size. Call it between phases that
    need different tensors, such as training and search, whose memory would add up; not after each
    step, since the next one pays for every page that it needs again (docs/log.md).
    """
    trim = _find_trim()
    if trim is not None:
        trim(0)


@cache
def _find_trim() -> Any:
    """Return the function `malloc_trim` of the C library, or None if it has none."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
