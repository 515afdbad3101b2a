import os
import signal
import subprocess
import sys

import pytest

import regard as package
from regard.cli.main import COMMANDS
from regard.core.errors import DataError
from regard.core.logging import logger
from regard.core.tables import resolve


def run(*command):
    """Run a command in its own process."""
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_version_is_that_of_the_package(regard):
    assert regard("--version").out == f"{package.__version__}\n"


def test_help_names_every_command(regard):
    result = regard("--help")
    assert result.code == 0
    assert [command for command in COMMANDS if f"\n  {command} " not in result.out] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(regard, command):
    result = regard(command, "--help")
    assert result.code == 0
    assert result.out.startswith("Usage: ")


def test_help_is_shown_without_arguments(regard):
    assert "Model commands:" in regard().out + regard().err


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_can_be_imported(name):
    assert callable(resolve(COMMANDS[name]))


def test_command_imports_no_other_command():
    code = "from regard.cli.main import app; app(['data', 'list'], standalone_mode=False)"
    done = run(sys.executable, "-c", f"{code}; import sys; print(*sys.modules)")
    loaded = {name for name in done.stdout.split() if name.startswith("regard.cli.model.")}
    assert loaded == set()


def test_unknown_command_is_refused(regard):
    result = regard("trian")
    assert result.code == 2
    assert "No such command 'trian'" in result.err


def test_unknown_option_is_refused(regard):
    result = regard("predict", "run", "--beems", "3")
    assert result.code == 2
    assert "No such option: --beems" in result.err


def test_help_imports_no_large_package():
    code = "import sys, regard.cli.main; print(*sorted(sys.modules))"
    done = run(sys.executable, "-c", code)
    assert done.returncode == 0
    large = {"torch", "numpy", "matplotlib", "tokenizers", "sacrebleu", "rich.progress"}
    assert large & set(done.stdout.split()) == set()


def test_regard_error_is_one_line_on_standard_error_with_exit_code_2():
    done = run(sys.executable, "-m", "regard", "data", "show", "phrasebok")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("regard: 'phrasebok' is neither a file nor a data set.")
    assert done.stderr.count("\n") == 1


def test_other_errors_keep_their_traceback(regard, monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr("regard.data.datasets.catalog.find_data", fail)
    with pytest.raises(ZeroDivisionError):
        regard("data", "show", "copy")


def test_interrupt_is_reported_in_one_line(regard, monkeypatch):
    def interrupt(*_, **__):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("regard.data.datasets.catalog.find_data", interrupt)
    # Tests started in the background ignore the signal by default.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        result = regard("data", "show", "copy")
    finally:
        signal.signal(signal.SIGINT, before)
    assert (result.code, result.err) == (130, "regard: interrupted.\n")


@pytest.mark.skipif(os.name == "nt", reason="pipes behave differently on Windows")
def test_closed_standard_output_is_not_an_error():
    command = f"{sys.executable} -m regard data show copy --num 10000"
    done = run("bash", "-o", "pipefail", "-c", f"{command} | head -n 1")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("arguments", "is_logged"), [(("--verbose",), True), ((), False)])
def test_verbose_logs_debug_messages(regard, monkeypatch, arguments, is_logged):
    def log_and_fail(*_, **__):
        logger.debug("in detail")
        raise DataError("Enough.")

    monkeypatch.setattr("regard.data.datasets.catalog.find_data", log_and_fail)
    assert ("in detail" in regard(*arguments, "data", "show", "copy").err) == is_logged
