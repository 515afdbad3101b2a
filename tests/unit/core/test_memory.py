import ctypes
import sys
from pathlib import Path

import pytest

from regard.core import memory
from regard.core.memory import RegularRelease, release_memory

BLOCK = 60_000


@pytest.fixture(autouse=True)
def forget_the_library():
    memory._find_trim.cache_clear()
    yield
    memory._find_trim.cache_clear()


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


@pytest.mark.parametrize(("is_enabled", "times"), [(True, [10, 25]), (False, [])])
def test_memory_is_released_at_intervals(monkeypatch, is_enabled, times):
    clock, found = [0.0], []
    monkeypatch.setattr(memory.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(memory, "release_memory", lambda: found.append(clock[0]))
    release = RegularRelease(is_enabled=is_enabled, seconds=10)
    for clock[0] in (1, 5, 10, 11, 19, 25, 30):
        release.step()
    assert found == times


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_other_systems_release_nothing(monkeypatch, platform):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(ctypes, "CDLL", None)
    release_memory()


def test_libraries_without_the_function_release_nothing(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    release_memory()
