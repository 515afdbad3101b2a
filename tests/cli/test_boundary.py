"""Errors of input, output and encoding: one line and exit code 2; what a terminal gets is clean."""

import errno
import io
import os
import sys

import pytest
from safetensors import SafetensorError

from regard.cli import boundary as boundary_module
from regard.cli import main as main_module
from regard.cli.boundary import boundary, prepare_streams
from regard.core.logging import logger


class FullStream(io.StringIO):
    """A file on a full disk."""

    def flush(self):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class TerminalStream(io.TextIOWrapper):
    def __init__(self, *, encoding="utf-8"):
        super().__init__(io.BytesIO(), encoding=encoding, write_through=True)

    def isatty(self):
        return True

    @property
    def text(self):
        return self.buffer.getvalue().decode(self.encoding)


@pytest.fixture
def raising(regard, monkeypatch):
    """Function that runs a command which raises an error."""

    def run(error):
        def fail(*args):
            raise error

        monkeypatch.setattr("regard.runs.recipe_list.list_recipes", fail)
        return regard("recipes")

    return run


@pytest.mark.parametrize(
    ("error", "parts"),
    [
        (PermissionError(errno.EACCES, "Permission denied", "a/b"), ("a/b", "permissions")),
        (OSError(errno.EROFS, "Read-only file system", "x.txt"), ("x.txt", "Read-only")),
        (OSError(errno.ENOSPC, "No space left on device"), ("No space left", "Free some space")),
        (NotADirectoryError(errno.ENOTDIR, "Not a directory", "f/g"), ("f/g", "is a file")),
        (IsADirectoryError(errno.EISDIR, "Is a directory", b"caf\xe9"), ("caf", "Name a file")),
        (OSError(errno.ENAMETOOLONG, "File name too long", "a" * 5_000), ("aaa… ", "shorter")),
        (OSError("cannot identify image file"), ("cannot identify image file",)),
        (RuntimeError("Symlink loop from 'x'"), ("Symlink loop from 'x'", "remove one")),
        (TimeoutError(), ("TimeoutError",)),
        (UnicodeEncodeError("utf-8", "a\udcff", 1, 2, "no surrogates"), ("not valid Unicode",)),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad byte"), ("bad byte", "Convert")),
        (SafetensorError("I/O error: Full (os error 28)"), ("No space left on device",)),
        (Exception("Permission denied (os error 13)"), ("Permission denied", "permissions")),
    ],
)
def test_error_of_input_or_output_is_one_line(raising, error, parts):
    result = raising(error)
    assert result.code == 2
    (line,) = result.err.splitlines()
    assert line.startswith("regard: ")
    assert [part for part in parts if part not in line] == []
    assert len(line) < 400


@pytest.mark.parametrize("error", [ValueError("a bug"), RuntimeError("os error"), KeyError("x")])
def test_bug_keeps_its_traceback(raising, error):
    with pytest.raises(type(error)):
        raising(error)


def test_message_with_a_file_name_of_two_lines_is_one_line(refused):
    assert "'a b.tsv'" in refused("data", "show", "a\nb.tsv")


def test_full_disk_at_standard_output_is_an_error(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", FullStream())
    with pytest.raises(boundary_module.typer.Exit) as ended, boundary():
        print("text")
    assert ended.value.exit_code == 2
    assert "No space left on device" in capsys.readouterr().err


def test_full_disk_at_the_message_is_silent(monkeypatch):
    monkeypatch.setattr(sys, "stderr", FullStream())
    with pytest.raises(boundary_module.typer.Exit) as ended, boundary():
        raise OSError(errno.EIO, "Input/output error")
    assert ended.value.exit_code == 2


@pytest.fixture
def terminal(monkeypatch):
    """Run the command line at a terminal; return its output and its messages."""
    monkeypatch.setenv("TERM", "xterm-256color")

    def run(*words):
        # Not before: pytest replaces the streams after the fixtures.
        streams = {"stdout": TerminalStream(), "stderr": TerminalStream()}
        for name, stream in streams.items():
            monkeypatch.setattr(sys, name, stream)
        monkeypatch.setattr(sys, "argv", ["regard", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main_module.main()
        return ended.value.code, streams["stdout"].text, streams["stderr"].text

    yield run
    logger.handlers.clear()


HOSTILE = "a\x1b]0;title\x07 b\x9b2J\tc \x1b[31mred\x08\n"


@pytest.mark.parametrize("command", [("data", "show"), ("data", "links")])
def test_data_are_printed_clean_at_a_terminal(terminal, tmp_path, command):
    path = tmp_path / "pairs.tsv"
    path.write_text(HOSTILE * 12, encoding="utf-8")
    code, out, err = terminal(*command, path)
    assert code == 0
    assert out.count("\n") >= 10
    assert not any(char in out + err for char in "\x1b\x07\x9b\x08")


def test_predictions_and_messages_are_printed_clean_at_a_terminal(terminal, tiny_run):
    code, out, err = terminal("predict", tiny_run.folder, "a \x1b[2J b", "--json")
    assert code == 0
    assert "\x1b" not in out + err
    code, out, err = terminal("predict", tiny_run.folder, "\x1b[2J/a.txt")
    assert code == 2
    assert err.startswith("regard: \N{REPLACEMENT CHARACTER}[2J/a.txt does not exist.")


def test_plot_of_hostile_text_is_clean_but_coloured_at_a_terminal(terminal, tiny_run):
    code, out, _ = terminal("show", tiny_run.folder, "a \x1b]0;title\x07 b")
    assert code == 0
    assert "\x1b]" not in out
    assert "\x07" not in out
    assert "\x1b[" in out  # the colours of the plot


def test_file_gets_the_bytes_of_data_unchanged(regard, tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text(HOSTILE * 12, encoding="utf-8")
    assert "\x1b]0;title\x07" in regard("data", "show", path).out


def test_terminal_that_cannot_show_a_character_gets_another(monkeypatch):
    stream = TerminalStream(encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", TerminalStream())
    prepare_streams()
    print("für \udcff")
    assert stream.text == "f?r ?\n"


def test_pipe_gets_the_bytes_of_a_file_name_that_is_not_utf_8(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", TerminalStream())
    prepare_streams()
    print("\udcff.tsv")
    assert stream.buffer.getvalue() == b"\xff.tsv\n"
