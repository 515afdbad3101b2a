"""Paths that cannot be written or read: one line, exit code 2."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LONG = "n" * 300


@pytest.fixture
def unwritable(tmp_path, monkeypatch):
    """Names of paths that cannot be written, by what is wrong with them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("a\tb\n", encoding="utf-8")
    (tmp_path / "circle").symlink_to("circle")
    for suffix in ("", ".npy", ".html"):
        os.mkfifo(tmp_path / f"pipe{suffix}")
    return {
        "below a file": "file/run",
        "long": LONG,
        "read-only": "/proc/run",
        "circle": "circle/run",
        "pipe": "pipe",
    }


@pytest.mark.parametrize("kind", ["below a file", "long", "read-only", "circle"])
def test_run_folder_that_cannot_be_written_is_refused_in_one_line(refused, unwritable, pairs, kind):
    message = refused("train", pairs, "--out", unwritable[kind], "train.max_steps=1", "-q")
    assert unwritable[kind].rpartition("/")[0] in message


@pytest.mark.parametrize("kind", ["below a file", "long", "read-only", "circle", "pipe"])
@pytest.mark.parametrize("command", ["embed", "compare", "links", "predict"])
def test_output_that_cannot_be_written_is_refused_in_one_line(
    refused, unwritable, pairs, tiny_run, command, kind
):
    suffix = {"embed": ".npy", "compare": ".html"}.get(command, "")
    words = {
        "embed": ("embed", tiny_run.folder, pairs),
        "compare": ("compare", tiny_run.folder, tiny_run.folder),
        "links": ("data", "links", pairs),
        "predict": ("predict", tiny_run.folder, pairs),
    }[command]
    assert refused(*words, "--out", unwritable[kind] + suffix, "-q")
    assert kind != "pipe" or Path(f"pipe{suffix}").is_fifo()


@pytest.mark.parametrize(
    "command", [("train",), ("data", "show"), ("explain",), ("predict", "RUN")]
)
def test_file_with_a_long_name_is_refused_in_one_line(refused, tiny_run, command):
    words = [tiny_run.folder if word == "RUN" else word for word in command]
    assert "nnn" in refused(*words, f"a/{LONG}.toml")


def test_files_with_names_that_are_not_utf_8_are_read_and_named(regard, tmp_path):
    path = tmp_path / os.fsdecode(b"\xff\xfe.tsv")
    path.write_text("a b\tc\n", encoding="utf-8")
    assert regard("data", "show", path).out == "a b\tc\n"
    path.write_text("a b\n", encoding="utf-8")
    assert regard("data", "show", path).code == 2


def run(*words, **options):
    """Run a command in its own process; return its exit code and its messages."""
    command = (sys.executable, "-m", "regard", *map(str, words))
    done = subprocess.run(command, stderr=subprocess.PIPE, timeout=120, check=False, **options)
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize("words", [("recipes",), ("--help",), ("data", "list", "--json")])
def test_full_disk_at_standard_output_is_one_line(words):
    with open("/dev/full", "wb") as full:
        code, messages = run(*words, stdout=full)
    assert code == 2
    (line,) = messages.splitlines()
    assert line.startswith("regard: ")
    assert "No space left on device" in line


def test_reader_that_closes_its_end_is_no_error():
    receiver, sender = os.pipe()
    os.close(receiver)
    assert run("data", "list", stdout=sender) == (0, "")
    os.close(sender)


def test_closed_standard_output_is_one_line():
    code, messages = run("recipes", preexec_fn=lambda: os.close(1))
    assert code == 2
    assert "Bad file descriptor" in messages
    assert len(messages.splitlines()) == 1


def test_full_disk_at_standard_error_is_silent():
    with open("/dev/full", "wb") as full:
        command = (sys.executable, "-m", "regard", "nothing")
        assert subprocess.run(command, stderr=full, timeout=120, check=False).returncode == 2
