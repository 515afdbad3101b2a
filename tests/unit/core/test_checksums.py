import os

import pytest

from regard.core import checksums
from regard.core.checksums import (
    CHECKSUMS,
    add_checksums,
    check_files,
    find_checksums,
    find_fault,
    find_faults,
    forget_checksums,
    replacing_listed,
)
from regard.core.errors import CheckpointError
from regard.core.files import read_json, write_json

LARGE = 300


@pytest.fixture(autouse=True)
def small_limits(monkeypatch):
    """Let files of a few bytes be large."""
    monkeypatch.setattr(checksums, "SMALL", 100)
    monkeypatch.setattr(checksums, "HEAD", 10)


@pytest.fixture
def folder(tmp_path):
    """A folder with the checksums of a small and of a large file."""
    (tmp_path / "small").write_bytes(b"abc")
    (tmp_path / "large").write_bytes(bytes(range(100)) * 3)
    (tmp_path / ".hidden").write_bytes(b"x")
    add_checksums(tmp_path)
    return tmp_path


def link_to_a_copy(path):
    """Move a file out of its folder, and leave a link."""
    path.symlink_to(path.rename(path.parent.parent / f"outside-{path.parent.name}-{path.name}"))


def overwrite(path, position, content):
    with path.open("r+b") as file:
        file.seek(position)
        file.write(content)


def test_unchanged_files_have_no_faults(folder):
    assert read_json(folder / CHECKSUMS).keys() == {"small", "large"}
    assert find_faults(folder) == find_faults(folder, is_whole=False) == []
    check_files(folder)


def test_links_out_of_the_folder_are_not_listed(tmp_path):
    (tmp_path / "outside").touch()
    run = tmp_path / "run"
    run.mkdir()
    (run / "notes").symlink_to("../outside")
    (run / "file").touch()
    add_checksums(run)
    assert read_json(run / CHECKSUMS).keys() == {"file"}


def test_folder_without_a_list_is_not_checked(tmp_path):
    (tmp_path / "file").touch()
    assert find_faults(tmp_path) == []
    assert find_fault(tmp_path / "file") == ""


@pytest.mark.parametrize("is_whole", [True, False])
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: overwrite(path, 0, b"?"), "differs from its checksum"),
        (lambda path: path.write_bytes(path.read_bytes() + b"?"), r"has \d+ bytes instead of \d+"),
        (lambda path: path.write_bytes(b""), r"has 0 bytes instead of \d+"),
        (lambda path: path.unlink(), "is missing"),
        (lambda path: (path.unlink(), path.mkdir()), "is not a file"),
        (lambda path: (path.unlink(), os.mkfifo(path)), "is not a file"),
        (lambda path: (path.unlink(), path.symlink_to("absent")), "is missing"),
        (lambda path: (path.unlink(), path.symlink_to(path)), "cannot be read: .*links"),
        (lambda path: link_to_a_copy(path), "is a link out of the folder"),
    ],
    ids=["start", "longer", "empty", "missing", "folder", "pipe", "dangling", "loop", "link"],
)
@pytest.mark.parametrize("name", ["small", "large"])
def test_damage_is_found_and_named(folder, name, damage, message, is_whole):
    damage(folder / name)
    with pytest.raises(
        CheckpointError, match=f"is damaged: {name} {message}. Copy it again, or tr"
    ):
        check_files(folder, is_whole=is_whole)


@pytest.mark.parametrize("position", [10, 150, LARGE - 1])
def test_damage_inside_a_large_file_is_found_in_the_whole_file_only(folder, position):
    overwrite(folder / "large", position, b"\xff")
    assert find_fault(folder / "large", is_whole=False) == ""
    assert find_fault(folder / "large") == "differs from its checksum"


def test_every_byte_of_a_small_file_is_always_compared(folder):
    overwrite(folder / "small", 2, b"\xff")
    assert find_fault(folder / "small", is_whole=False) == "differs from its checksum"


def test_all_faults_are_listed_but_ignored_ones(folder):
    overwrite(folder / "small", 0, b"?")
    (folder / "large").unlink()
    assert find_faults(folder) == ["small differs from its checksum", "large is missing"] or (
        find_faults(folder) == ["large is missing", "small differs from its checksum"]
    )
    assert find_faults(folder, ignored=["small"]) == ["large is missing"]


def test_message_names_the_first_of_many_faults(folder):
    for number in range(20):
        (folder / f"{number:02}").touch()
    add_checksums(folder)
    for number in range(20):
        (folder / f"{number:02}").unlink()
    with pytest.raises(CheckpointError, match=r"00 is missing; .*07 is missing and 12 more\."):
        check_files(folder)


def test_listed_files_keep_their_checksum_when_others_are_added(folder):
    overwrite(folder / "small", 0, b"?")
    (folder / "new").write_bytes(b"new")
    add_checksums(folder)
    assert find_faults(folder) == ["small differs from its checksum"]
    assert "new" in read_json(folder / CHECKSUMS)


def test_forgotten_file_may_change(folder):
    forget_checksums(folder, ["small", "unknown"])
    overwrite(folder / "small", 0, b"?")
    assert find_faults(folder) == []


@pytest.mark.parametrize("name", ["small", "large"])
def test_replaced_file_has_the_new_checksum_only(folder, name):
    old = (folder / name).read_bytes()
    with replacing_listed(folder / name) as temporary:
        temporary.write_bytes(b"new")
    assert find_faults(folder) == []
    (folder / name).write_bytes(old)
    assert find_faults(folder) != []


def test_replaced_file_of_a_folder_without_a_list_is_not_listed(tmp_path):
    with replacing_listed(tmp_path / "file") as temporary:
        temporary.write_bytes(b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("num_replaced", range(4))
def test_crash_at_any_replacement_leaves_valid_checksums(folder, monkeypatch, num_replaced):
    replace, remaining = os.replace, iter(range(num_replaced))

    def crash(*paths):
        if next(remaining, None) is None:
            raise KeyboardInterrupt
        replace(*paths)

    monkeypatch.setattr("pathlib.Path.replace", lambda path, target: crash(path, target))
    contents = {(folder / "small").read_bytes(), b"newer"}
    try:
        with replacing_listed(folder / "small") as temporary:
            temporary.write_bytes(b"newer")
    except KeyboardInterrupt:
        assert num_replaced < 3
    assert (folder / "small").read_bytes() in contents
    assert find_faults(folder) == []


@pytest.mark.parametrize(
    "content",
    [
        [],
        {"small": {}},
        {"small": [{}]},
        {"small": [{"bytes": "3", "sha256": ""}]},
        {"small": [{"bytes": 3, "sha256": 5}]},
        {"small": [{"bytes": 3, "sha256": "", "head": 5}]},
        {"../small": [{"bytes": 3, "sha256": ""}]},
        {"/dev/zero": [{"bytes": 3, "sha256": ""}]},
        {"..": [{"bytes": 3, "sha256": ""}]},
        {"a\0": [{"bytes": 3, "sha256": ""}]},
    ],
)
def test_invalid_list_is_named(folder, content):
    write_json(folder / CHECKSUMS, content)
    with pytest.raises(CheckpointError, match=r"checksums\.json must list files of its folder"):
        check_files(folder)


def test_unreadable_list_is_named(folder):
    (folder / CHECKSUMS).write_bytes(bytes(50))
    with pytest.raises(CheckpointError, match=r"checksums\.json is not valid JSON"):
        check_files(folder)


def test_one_checksum_for_the_files_of_a_folder(folder, tmp_path):
    def find(folder):
        return find_checksums(folder, always=("small.json",), ignored=("other.json",))

    (folder / "other.json").write_text("{}")
    add_checksums(folder)
    before = find(folder)
    overwrite(folder / "other.json", 0, b"[")
    assert find(folder) == before
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "small.json").write_text("1")
    first = find(tmp_path / "new")
    (tmp_path / "new" / "small.json").write_text("2")
    (tmp_path / "new" / "other.json").write_text("3")
    assert find(tmp_path / "new") != first
