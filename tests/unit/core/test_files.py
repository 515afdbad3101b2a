import errno
import hashlib
import json
import os
import re
from pathlib import Path

import pytest

from regard.core.errors import CheckpointError, ConfigError, DataError
from regard.core.files import (
    append_json_line,
    check_suffix,
    find_irreplaceable_kind,
    read_json,
    read_json_lines,
    remove_leftovers,
    replacing,
    replacing_folder,
    sha256,
    sync_folder,
    write_json,
    write_text,
)


@pytest.fixture
def old_file(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old", encoding="utf-8")
    return path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_new_file_replaces_the_old_one(old_file):
    write_text(old_file, "new ä")
    assert old_file.read_text(encoding="utf-8") == "new ä"


def test_missing_folders_are_created(tmp_path):
    write_text(tmp_path / "a" / "b" / "file.txt", "new")
    assert (tmp_path / "a" / "b" / "file.txt").read_text(encoding="utf-8") == "new"


def test_old_file_exists_until_the_block_ends(old_file):
    with replacing(old_file) as temporary:
        temporary.write_text("new", encoding="utf-8")
        assert old_file.read_text(encoding="utf-8") == "old"


def test_exception_leaves_the_old_file_and_nothing_else(old_file):
    with pytest.raises(RuntimeError, match="half way"), replacing(old_file) as temporary:
        temporary.write_text("half", encoding="utf-8")
        raise RuntimeError("half way")
    assert old_file.read_text(encoding="utf-8") == "old"
    assert names(old_file.parent) == ["file.txt"]


def test_success_leaves_no_temporary_file(old_file):
    write_text(old_file, "new")
    assert names(old_file.parent) == ["file.txt"]


def test_full_disk_is_named_and_leaves_the_old_file(old_file, monkeypatch):
    def fill(*_arguments, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fill)
    with pytest.raises(DataError, match=r"file\.txt could not be written: the disk is full\. Free"):
        write_text(old_file, "new")
    assert old_file.read_bytes() == b"old"
    assert names(old_file.parent) == ["file.txt"]


def test_full_disk_at_fsync_leaves_the_old_file(old_file, monkeypatch):
    def fill(_handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fill)
    with pytest.raises(DataError, match="the disk is full"):
        write_text(old_file, "new")
    assert old_file.read_bytes() == b"old"


def test_other_disk_errors_are_raised_unchanged(old_file):
    with pytest.raises(OSError, match="Input/output error"), replacing(old_file):
        raise OSError(errno.EIO, "Input/output error")


def test_file_gets_the_default_permissions(tmp_path):
    umask = os.umask(0o027)
    try:
        write_text(tmp_path / "file.txt", "new")
    finally:
        os.umask(umask)
    assert (tmp_path / "file.txt").stat().st_mode & 0o777 == 0o640


def test_pipe_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="pipe must be a file, but is a pipe. Name another file"):
        write_text(tmp_path / "pipe", "text")
    assert names(tmp_path) == ["pipe"] and (tmp_path / "pipe").is_fifo()


# None of them is written to: a failing test would damage the machine.
@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/dev/null", "a device"),
        ("/dev/../dev/stdout", "a (device|pipe|link of the system)"),
        ("/proc/self/fd/{descriptor}", "a link of the system"),
        ("/dev/shm/file", ""),
        ("{file}", ""),
        ("{link}", ""),
    ],
)
def test_what_a_file_must_not_replace(old_file, path, kind):
    link = old_file.with_name("link")
    link.symlink_to(old_file)
    with old_file.open() as file:
        paths = {"descriptor": file.fileno(), "file": old_file, "link": link}
        assert re.fullmatch(kind, find_irreplaceable_kind(Path(path.format(**paths))))


def test_json_round_trips(tmp_path):
    value = {"name": "Ä \u2028", "numbers": [1, 2.5, None, True]}
    write_json(tmp_path / "file.json", value)
    assert read_json(tmp_path / "file.json") == value


def test_json_ends_with_a_newline_and_keeps_letters(tmp_path):
    write_json(tmp_path / "file.json", ["ä"])
    assert (tmp_path / "file.json").read_text(encoding="utf-8") == '[\n  "ä"\n]\n'


def test_missing_json_asks_for_a_run_folder(tmp_path):
    with pytest.raises(CheckpointError, match=r"file\.json is missing\. Is .+ a run folder\?$"):
        read_json(tmp_path / "file.json")


def test_folder_in_place_of_json_is_named(tmp_path):
    (tmp_path / "file.json").mkdir()
    with pytest.raises(CheckpointError, match=r"file\.json must be a file, but is a folder"):
        read_json(tmp_path / "file.json")


@pytest.mark.parametrize("content", [b'{"a": ', b'"\xff"'], ids=["cut", "not-text"])
def test_damaged_json_is_named(tmp_path, content):
    (tmp_path / "file.json").write_bytes(content)
    with pytest.raises(
        CheckpointError,
        match=r"file\.json is not valid (JSON|UTF-8) \(.+\)\. The file is damaged\.$",
    ):
        read_json(tmp_path / "file.json")


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "journal.jsonl"
    for row in ({"step": 1}, {"step": 2, "text": "ä\u2028\x85 \n"}):
        append_json_line(path, row)
    return path


def test_lines_round_trip_with_any_characters(log):
    assert read_json_lines(log) == [{"step": 1}, {"step": 2, "text": "ä\u2028\x85 \n"}]


def test_every_row_is_one_line(log):
    assert log.read_bytes().count(b"\n") == 2


def test_folder_is_replaced_only_without_an_error(tmp_path):
    path = tmp_path / "deep" / "folder"
    with replacing_folder(path) as temporary:
        (temporary / "new").touch()
        assert not path.exists()
    assert [child.name for child in path.iterdir()] == ["new"]
    assert path.stat().st_mode & 0o777 == 0o777 & ~current_umask()
    assert [child.name for child in path.parent.iterdir()] == ["folder"]


def current_umask():
    umask = os.umask(0)
    os.umask(umask)
    return umask


def test_existing_folder_is_replaced_completely(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "old").touch()
    with replacing_folder(tmp_path / "folder") as temporary:
        (temporary / "new").touch()
    assert [child.name for child in (tmp_path / "folder").iterdir()] == ["new"]
    assert [child.name for child in tmp_path.iterdir()] == ["folder"]


def test_existing_folder_survives_a_failure(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "old").touch()
    with pytest.raises(KeyError), replacing_folder(tmp_path / "folder") as temporary:
        (temporary / "new").touch()
        raise KeyError
    assert [child.name for child in (tmp_path / "folder").iterdir()] == ["old"]
    assert [child.name for child in tmp_path.iterdir()] == ["folder"]


def test_leftovers_of_killed_processes_are_removed(tmp_path):
    for name in (".a.json.x.part", "a.json", "b.part", ".hidden"):
        (tmp_path / name).touch()
    (tmp_path / ".c.y.part").mkdir()
    (tmp_path / ".c.y.part" / "file").touch()
    remove_leftovers(tmp_path)
    assert names(tmp_path) == [".hidden", "a.json", "b.part"]
    remove_leftovers(tmp_path / "absent")


def test_replaced_file_and_its_name_are_written_to_disk(tmp_path, monkeypatch):
    synced, fsync = [], os.fsync

    def record(handle):
        synced.append(os.readlink(f"/proc/self/fd/{handle}"))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", record)
    write_text(tmp_path / "file.txt", "new")
    file, folder = synced
    assert Path(file).name.startswith(".file.txt.") and folder == str(tmp_path)


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP])
def test_file_system_that_cannot_sync_folders_is_accepted(tmp_path, monkeypatch, number):
    def refuse(handle):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    sync_folder(tmp_path)


def test_failing_disk_is_not_ignored(tmp_path, monkeypatch):
    def fail(handle):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output error"):
        sync_folder(tmp_path)


def test_missing_log_has_no_rows(tmp_path):
    assert read_json_lines(tmp_path / "absent.jsonl") == []


def test_empty_log_has_no_rows(tmp_path):
    (tmp_path / "empty.jsonl").touch()
    assert read_json_lines(tmp_path / "empty.jsonl") == []


def test_incomplete_last_line_is_skipped(log):
    whole = log.read_bytes()
    start = whole.index(b"\n") + 1
    # The newline itself may be missing: the row before it is whole.
    for end in range(start, len(whole) - 1):
        log.write_bytes(whole[:end])
        assert read_json_lines(log) == [{"step": 1}]


def test_damaged_line_in_the_middle_is_named(log):
    log.write_bytes(b"{\n" + log.read_bytes())
    with pytest.raises(CheckpointError, match="line 1, is not valid JSON"):
        read_json_lines(log)


def test_checksum_equals_the_test_vectors(tmp_path):
    content = json.dumps(list(range(1000))).encode() * 300  # more than one block
    (tmp_path / "file").write_bytes(content)
    assert sha256(tmp_path / "file") == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    ("suffixes", "known"),
    [
        ((".html",), ".html"),
        ((".png", ".svg"), ".png or .svg"),
        ((".a", ".b", ".c"), ".a, .b or .c"),
    ],
)
def test_file_with_another_suffix_is_an_error(suffixes, known):
    assert check_suffix(Path(f"x{suffixes[0].upper()}"), "--out", *suffixes) == suffixes[0]
    with pytest.raises(ConfigError, match=rf"^`--out` must end in {known}, but is 'x.bmp'\.$"):
        check_suffix(Path("x.bmp"), "--out", *suffixes)


def test_full_disk_at_a_json_line_names_the_file(tmp_path, monkeypatch):
    path = tmp_path / "log.jsonl"
    monkeypatch.setattr(Path, "open", lambda *_, **__: open("/dev/full", "a"))
    with pytest.raises(OSError, match="No space left on device") as raised:
        append_json_line(path, {"step": 1})
    assert raised.value.filename == str(path)
