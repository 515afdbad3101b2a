import ctypes
import sys
from pathlib import Path

import pytest

from regard.core import device
from regard.core.device import release_memory

BLOCK = 60_000


@pytest.fixture(autouse=True)
def forget_the_library():
    device._find_trim.cache_clear()
    yield
    device._find_trim.cache_clear()


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_trim"),
    reason="the C library keeps no memory that could be released",
)
def test_memory_freed_between_used_blocks_is_returned():
    blocks = [b"x" * (BLOCK + number % 2) for number in range(1_000)]
    full = resident()
    blocks = blocks[::10]
    release_memory()
    assert full - resident() > 0.8 * 0.9 * 1_000 * BLOCK
    assert len(blocks) == 100


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_other_systems_release_nothing(monkeypatch, platform):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(ctypes, "CDLL", None)
    release_memory()


def test_libraries_without_the_function_release_nothing(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    release_memory()
