"""Device, precision, seeds and a description of the hardware."""

import os
import platform
import random
from typing import Literal

import torch

from regard.core.errors import ConfigError

Precision = Literal["auto", "fp32", "bf16"]


def find_device(name: str = "auto") -> torch.device:
    """Return the device called `name`; `auto` selects a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"`device` must be 'auto', 'cpu' or 'cuda', but is '{name}'.") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError("`device` is 'cuda', but torch finds no GPU. Use --device cpu.")
    return device


def find_dtype(precision: Precision, device: torch.device) -> torch.dtype:
    """Return the dtype of matrix products; `auto` selects bf16 where it is native."""
    if precision == "auto":
        return torch.bfloat16 if has_native_bf16(device) else torch.float32
    return torch.bfloat16 if precision == "bf16" else torch.float32


def has_native_bf16(device: torch.device) -> bool:
    """Return whether the device multiplies bf16 matrices in hardware."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def seed_everything(seed: int) -> None:
    """Seed every random number generator of this package."""
    random.seed(seed)
    torch.manual_seed(seed)


def describe_hardware(device: torch.device) -> str:
    """Return a short description of the hardware."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    bf16 = ", native bf16" if has_native_bf16(device) else ""
    return f"{_processor()}, {num_cores()} cores{bf16}"


def num_cores() -> int:
    """Return the number of cores available to this process."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
