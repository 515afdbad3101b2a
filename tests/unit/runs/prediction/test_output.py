"""Predictions in a file continue after an interruption at any moment."""

import errno
import json
import logging
import os

import pytest

from regard.core.errors import CheckpointError, ConfigError, DataError
from regard.runs.prediction import output as outputs
from regard.runs.prediction.groups import group
from regard.runs.prediction.output import PartialOutput
from tests.faults.harness import FINISHED, count_operations, run_killed, start_child, wait_for

SOURCES = [f"line {number}" for number in range(11)]
EXPECTED = "".join(f"LINE {number}\nlonger {number}\n" for number in range(11))


class StopError(Exception):
    """Interruption of a test."""


def write(folder, *, sources=SOURCES, stop_at=None, is_resumed=True, **settings):
    """Predict in groups of three; stop in the middle of printing a prediction."""
    out = folder / "out.txt"
    with PartialOutput(out, {"beams": 2, **settings}, is_resumed=is_resumed) as output:
        for taken in group(output.skip(sources), 3):
            for number, source in enumerate(taken, output.num_done):
                print(source.upper(), file=output.file)
                if number == stop_at:
                    raise StopError
                print(source.replace("line", "longer"), file=output.file)
            output.add(taken)
        output.finish()
    return out.read_text()


def stop(folder, *, at, **options):
    with pytest.raises(StopError):
        write(folder, stop_at=at, **options)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(autouse=True)
def always_saved(monkeypatch):
    monkeypatch.setattr(outputs, "SAVE_SECONDS", 0.0)


def test_the_file_is_replaced_at_the_end_only(tmp_path):
    (tmp_path / "out.txt").write_text("old")
    stop(tmp_path, at=7, is_resumed=False)
    assert (tmp_path / "out.txt").read_text() == "old"
    assert write(tmp_path) == EXPECTED
    assert names(tmp_path) == ["out.txt"]
    assert write(tmp_path, is_resumed=False, sources=[]) == ""


def test_stopped_predictions_are_whole_groups(tmp_path):
    stop(tmp_path, at=7)
    assert (tmp_path / "out.txt.part").read_text() == "".join(EXPECTED.splitlines(True)[:12])
    assert json.loads((tmp_path / "out.txt.part.json").read_text())["sources"] == 6
    stop(tmp_path, at=10)
    assert (tmp_path / "out.txt.part").read_text() == "".join(EXPECTED.splitlines(True)[:18])
    assert write(tmp_path) == EXPECTED


def test_nothing_is_left_if_nothing_was_predicted(tmp_path):
    stop(tmp_path, at=1, is_resumed=False)
    assert names(tmp_path) == []


def test_stopping_names_the_option_to_resume(tmp_path, messages):
    logging.getLogger("regard").setLevel(logging.INFO)
    stop(tmp_path, at=7)
    assert messages() == [
        f"{tmp_path}/out.txt.part holds predictions of 6 sources. Continue with the same command "
        "and `--resume`."
    ]


def test_a_kill_at_any_operation_can_be_resumed(tmp_path):
    log = tmp_path / "log"
    (tmp_path / "whole").mkdir()
    num = count_operations(write, tmp_path / "whole", log=log)
    assert num > 15
    for number in range(num):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert run_killed(write, folder, at=number, log=log) < 0
        # Killed once more while it resumes, if it has that many operations left.
        run_killed(write, folder, at=6, log=log)
        if len(names(folder)) != 1:
            assert wait_for(start_child(write, folder, log=log)) == FINISHED, log.read_text()
        assert (folder / "out.txt").read_text() == EXPECTED, number
        assert names(folder) == ["out.txt"], number


def test_text_after_the_saved_size_is_written_again(tmp_path):
    stop(tmp_path, at=7)
    with (tmp_path / "out.txt.part").open("a") as file:
        file.write("torn li")
    assert write(tmp_path) == EXPECTED


def test_sources_after_those_that_are_predicted_may_change(tmp_path):
    stop(tmp_path, at=7)
    assert write(tmp_path, sources=SOURCES[:8]) == "".join(EXPECTED.splitlines(True)[:16])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"beams": 3}, r"options of the interrupted command, but `beams` was 2 and is 3\."),
        ({"runs": ["x"]}, "run of the interrupted command, but its weights or settings are others"),
        ({"sources": ["line x", *SOURCES[1:]]}, "its first 6 sources differ"),
        ({"sources": SOURCES[:5]}, "its first 6 sources are only 5"),
        ({"is_resumed": False}, "6 sources from an interrupted command. Continue it with `--resu"),
    ],
)
def test_other_predictions_are_not_continued(tmp_path, change, message):
    stop(tmp_path, at=7, is_resumed=False)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ConfigError, match=message):
        write(tmp_path, **change)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert write(tmp_path) == EXPECTED


def test_finished_file_is_not_resumed(tmp_path):
    write(tmp_path)
    with pytest.raises(ConfigError, match=r"out.txt.part.json, which .* does not exist"):
        write(tmp_path)
    assert names(tmp_path) == ["out.txt"]


def test_file_from_elsewhere_is_not_overwritten(tmp_path):
    (tmp_path / "out.txt.part").write_text("mine")
    for is_resumed in (False, True):
        with pytest.raises(ConfigError, match=r"part must not exist without out.txt.part.json"):
            write(tmp_path, is_resumed=is_resumed)
    assert (tmp_path / "out.txt.part").read_text() == "mine"


def test_link_in_place_of_the_file_is_refused(tmp_path):
    (tmp_path / "mine").write_text("")
    (tmp_path / "out.txt.part").symlink_to(tmp_path / "mine")
    with pytest.raises(DataError, match="cannot be written"):
        write(tmp_path, is_resumed=False)


def test_device_as_output_is_refused():
    with pytest.raises(ConfigError, match="must be a file, but /dev/null is a device"):
        PartialOutput(outputs.Path("/dev/null"), {}, is_resumed=False)


def test_missing_predictions_are_an_error(tmp_path):
    stop(tmp_path, at=7)
    os.truncate(tmp_path / "out.txt.part", 3)
    with pytest.raises(CheckpointError, match=r"part must have at least 96 bytes, .* but has 3"):
        write(tmp_path)


def test_two_commands_do_not_write_one_file(tmp_path):
    with PartialOutput(tmp_path / "out.txt", {}, is_resumed=False) as output:
        output.skip(["a"])
        with pytest.raises(ConfigError, match="part is in use by another command"):
            write(tmp_path, is_resumed=False)
        print("a", file=output.file)
        output.add(["a"])
        output.finish()
    assert (tmp_path / "out.txt").read_text() == "a\n"


def test_full_disk_can_be_resumed(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    remaining = iter([os.fsync] * 9)
    monkeypatch.setattr(os, "fsync", lambda file: next(remaining, fail)(file))
    with pytest.raises(DataError, match="the disk is full. Free some space, and continue"):
        write(tmp_path)
    monkeypatch.undo()
    assert json.loads((tmp_path / "out.txt.part.json").read_text())["sources"] > 0
    assert write(tmp_path) == EXPECTED
