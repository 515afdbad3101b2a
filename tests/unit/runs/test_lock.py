import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest

from regard.core.errors import CheckpointError, ConfigError, DataError
from regard.runs import lock as locks
from regard.runs.lock import LOCK, FolderLock, FolderWatch
from regard.runs.train import train
from regard.training.loggers.logger import Logger

HOLD = """
import sys, time
from pathlib import Path
from regard.runs.lock import FolderLock
with FolderLock(Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def other_process(tmp_path):
    """A process that has locked a folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path / "run"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "locked\n"
    yield process
    process.kill()
    process.communicate()


def test_lock_of_another_process_is_refused_and_names_it(other_process, tmp_path):
    named = rf"run is in use by another training \(process {other_process.pid} on .+ since 20.*\)\."
    with pytest.raises(ConfigError, match=named), FolderLock(tmp_path / "run"):
        pass


def test_lock_of_a_killed_process_is_released(other_process, tmp_path):
    other_process.kill()
    other_process.wait()
    assert (tmp_path / "run" / LOCK).exists()
    with FolderLock(tmp_path / "run") as lock:
        lock.check()
        assert json.loads((tmp_path / "run" / LOCK).read_text())["pid"] == os.getpid()


def test_refused_lock_leaves_the_file_of_the_first(tmp_path):
    with FolderLock(tmp_path) as first:
        for _ in range(2):
            with (
                pytest.raises(ConfigError, match="in use by another training"),
                FolderLock(tmp_path),
            ):
                pass
        first.check()


@pytest.mark.parametrize("content", [b"", b'{"pid": 7, "host": "a'])
def test_name_that_is_not_written_yet_is_awaited(tmp_path, content):
    name = {"pid": 7, "host": "host", "since": "2026-01-01 00:00:00"}
    with FolderLock(tmp_path):
        (tmp_path / LOCK).write_bytes(content)
        writing = threading.Timer(0.05, (tmp_path / LOCK).write_text, [json.dumps(name)])
        writing.start()
        with (
            pytest.raises(ConfigError, match=r"\(process 7 on host since 2026-01-01 00:00:00\)"),
            FolderLock(tmp_path),
        ):
            pass
        writing.join()


def test_lock_that_stays_without_a_name_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "MAX_WAIT", 0.05)
    with FolderLock(tmp_path):
        (tmp_path / LOCK).write_bytes(b"")
        with pytest.raises(ConfigError, match=r"another training\. Wait"), FolderLock(tmp_path):
            pass


def test_new_folder_that_stays_empty_is_removed(tmp_path):
    with FolderLock(tmp_path / "a" / "b"):
        assert (tmp_path / "a" / "b" / LOCK).exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("is_new", [True, False])
def test_folder_that_was_there_or_has_files_stays(tmp_path, is_new):
    folder = tmp_path / "run"
    if not is_new:
        folder.mkdir()
    with FolderLock(folder):
        if is_new:
            (folder / "file").touch()
    assert [path.name for path in folder.iterdir()] == (["file"] if is_new else [])


def test_file_deleted_by_the_process_before_is_locked_anew(tmp_path, monkeypatch):
    """The file is deleted between opening and locking it."""
    flock, calls = locks.fcntl.flock, []

    def delete_first(handle, operation):
        if not calls:
            (tmp_path / LOCK).unlink()
        calls.append(handle)
        flock(handle, operation)

    monkeypatch.setattr(locks.fcntl, "flock", delete_first)
    with FolderLock(tmp_path) as lock:
        lock.check()
    assert len(calls) == 2


@pytest.mark.parametrize("target", ["precious", "absent"])
def test_link_in_place_of_the_lock_is_not_followed(tmp_path, target):
    (tmp_path / "precious").write_text("text")
    run = tmp_path / "run"
    run.mkdir()
    (run / LOCK).symlink_to(f"../{target}")
    with pytest.raises(DataError, match=r"run/\.lock cannot be written: "), FolderLock(run):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {"precious", "run"}
    assert (tmp_path / "precious").read_text() == "text"


def test_pipe_in_place_of_the_lock_is_refused(tmp_path):
    os.mkfifo(tmp_path / LOCK)
    with pytest.raises(DataError, match="cannot be written: "), FolderLock(tmp_path):
        pass


def test_file_system_without_locks_is_named(tmp_path, monkeypatch, caplog):
    def refuse(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(locks.fcntl, "flock", refuse)
    with FolderLock(tmp_path) as lock:
        lock.check()
    assert "has no locks. Do not start a second training there." in caplog.text


def test_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with (
        pytest.raises(DataError, match="run cannot be written: "),
        FolderLock(tmp_path / "file/run"),
    ):
        pass


@pytest.mark.parametrize("is_replaced", [True, False])
def test_deleted_folder_is_noticed_at_every_event(tmp_path, is_replaced):
    folder = tmp_path / "run"
    with FolderLock(folder) as lock:
        watch = FolderWatch(lock)
        watch.advance(1)
        shutil.rmtree(folder)
        if is_replaced:
            folder.mkdir()
            (folder / LOCK).touch()
        for event in (lambda: watch.advance(2), lambda: watch.write({}), lambda: validate(watch)):
            with pytest.raises(
                CheckpointError, match="run was deleted or replaced during training"
            ):
                event()
    assert folder.exists() == is_replaced


def validate(watch):
    with watch.validating():
        pass


class At(Logger):
    """Calls a function at a step, or at an event."""

    def __init__(self, call, *, step=None, kind=None):
        self.call, self.step, self.kind = call, step, kind

    def advance(self, step):
        if step == self.step:
            self.call()

    def write(self, row):
        if row["kind"] == self.kind:
            self.call()


@pytest.mark.parametrize("changes", [{}, {"is_resumed": True}, {"is_forced": True}])
def test_second_training_into_a_folder_is_refused(reverse_files, tmp_path, changes):
    out = tmp_path / "run"
    second = reverse_files.request(out, "train.max_steps=1", **changes)
    refused = []

    def start_second():
        with pytest.raises(ConfigError, match=rf"run is in use .*process {os.getpid()} on "):
            train(second)
        refused.append(True)

    result = train(
        reverse_files.request(out, "train.max_steps=2"), display=At(start_second, step=1)
    )
    assert refused and result.evaluation is not None
    assert not (out / LOCK).exists()


@pytest.mark.parametrize("event", [{"step": 1}, {"kind": "valid"}, {"kind": "stop"}])
@pytest.mark.parametrize("is_replaced", [True, False])
def test_training_whose_folder_is_deleted_fails(reverse_files, tmp_path, event, is_replaced):
    out = tmp_path / "run"

    def delete():
        shutil.rmtree(out)
        if is_replaced:
            out.mkdir()

    request = reverse_files.request(out, "train.max_steps=3", "train.validate_every=2")
    with pytest.raises(CheckpointError, match="run was deleted or replaced during training"):
        train(request, display=At(delete, **event))


@pytest.mark.parametrize("name", ["config.json", "source.tokenizer.json", "checksums.json"])
def test_training_whose_files_are_deleted_fails(reverse_files, tmp_path, name):
    request = reverse_files.request(tmp_path, "train.max_steps=2")
    missing = rf"was changed by another program during training: {re.escape(name)} is missing"
    with pytest.raises(CheckpointError, match=missing):
        train(request, display=At((tmp_path / name).unlink, kind="stop"))


def test_run_of_a_killed_start_can_be_started_again(reverse_files, tmp_path):
    (tmp_path / LOCK).write_text("left by a killed process")
    (tmp_path / ".config.json.abc.part").write_text("{")
    result = train(reverse_files.request(tmp_path, "train.max_steps=1"))
    assert result.evaluation is not None
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_waiting_for_the_end_is_enough(reverse_files, other_process, tmp_path):
    request = replace(reverse_files.request(tmp_path / "run", "train.max_steps=1"))
    with pytest.raises(ConfigError, match="in use"):
        train(request)
    other_process.terminate()
    other_process.wait()
    started = time.monotonic()
    assert train(request).evaluation is not None
    assert time.monotonic() - started < 60
