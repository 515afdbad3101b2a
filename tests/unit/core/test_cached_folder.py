import os
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from regard.core.cached_folder import find_or_build
from regard.core.errors import DataError


@pytest.fixture
def builder():
    """Function that writes two files, and counts how often."""

    def build(folder):
        build.num += 1
        (folder / "first.txt").write_text("one")
        (folder / "second.txt").write_text("two")

    build.num = 0
    return build


def test_a_folder_is_built_once(tmp_path, builder):
    built = find_or_build(tmp_path / "a", builder)
    assert (built.path / "first.txt").read_text() == "one"
    assert find_or_build(tmp_path / "a", builder) == built
    assert builder.num == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "second.txt").write_text("t"),
        lambda folder: (folder / "second.txt").write_text("twx"),
        lambda folder: (folder / "second.txt").unlink(),
        lambda folder: (folder / "index.json").unlink(),
        lambda folder: (folder / "index.json").write_text('{"first.txt":'),
    ],
    ids=["truncated", "changed", "missing", "no index", "damaged index"],
)
def test_a_damaged_folder_is_built_again(tmp_path, builder, damage):
    path = find_or_build(tmp_path / "a", builder).path
    damage(path)
    assert (find_or_build(path, builder).path / "second.txt").read_text() == "two"
    assert builder.num == 2


def test_processes_that_build_the_same_folder_do_not_disturb_each_other(tmp_path):
    num = 8
    barrier = Barrier(num)

    def build(folder):
        barrier.wait()  # all of them find no folder and build it
        (folder / "first.txt").write_text("one")

    with ThreadPoolExecutor(num) as pool:
        found = list(pool.map(lambda _: find_or_build(tmp_path / "a", build), range(num)))
    assert {(one.path / "first.txt").read_text() for one in found} == {"one"}
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_an_error_while_building_leaves_no_files(tmp_path):
    def build(folder):
        (folder / "first.txt").write_text("one")
        raise DataError("line 3")

    with pytest.raises(DataError, match="line 3"):
        find_or_build(tmp_path / "a", build)
    assert list(tmp_path.iterdir()) == []


def test_a_cache_that_cannot_be_written_is_reported(tmp_path, builder):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="could not be written: .* Set REGARD_CACHE to another"):
        find_or_build(tmp_path / "file" / "a", builder)


def test_abandoned_folders_are_removed_and_those_in_work_are_kept(tmp_path, builder):
    for name in (".a.old.part", ".a.new.part", ".b.old.part"):
        (tmp_path / name / "built").mkdir(parents=True)
        (tmp_path / name / "built" / "first.txt").write_text("on")
        if "old" in name:
            for path in (tmp_path / name, *(tmp_path / name).rglob("*")):
                os.utime(path, (1, 1))
    find_or_build(tmp_path / "a", builder)
    assert {path.name for path in tmp_path.iterdir()} == {"a", ".a.new.part", ".b.old.part"}
