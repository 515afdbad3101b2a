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
    """A command in a process of its own."""
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_version_is_the_packages(regard):
    assert regard("--version").out == f"{package.__version__}\n"


def test_help_names_every_verb(regard):
    answer = regard("--help")
    assert answer.code == 0
    assert [verb for verb in COMMANDS if f"\n  {verb} " not in answer.out] == []


@pytest.mark.parametrize("verb", COMMANDS)
def test_every_verb_has_help(regard, verb):
    answer = regard(verb, "--help")
    assert answer.code == 0
    assert answer.out.startswith("Usage: ")


def test_no_words_at_all_show_the_help(regard):
    assert "Model commands:" in regard().out + regard().err


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_can_be_imported(name):
    assert callable(resolve(COMMANDS[name]))


def test_command_imports_no_other_command():
    code = "from regard.cli.main import app; app(['data', 'list'], standalone_mode=False)"
    done = run(sys.executable, "-c", f"{code}; import sys; print(*sys.modules)")
    loaded = {name for name in done.stdout.split() if name.startswith("regard.cli.model.")}
    assert loaded == set()


def test_unknown_verb_is_refused(regard):
    answer = regard("trian")
    assert answer.code == 2
    assert "No such command 'trian'" in answer.err


def test_unknown_option_is_refused(regard):
    answer = regard("predict", "run", "--beems", "3")
    assert answer.code == 2
    assert "No such option: --beems" in answer.err


def test_help_is_quick_because_nothing_heavy_is_imported():
    code = "import sys, regard.cli.main; print(*sorted(sys.modules))"
    done = run(sys.executable, "-c", code)
    assert done.returncode == 0
    heavy = {"torch", "numpy", "matplotlib", "tokenizers", "sacrebleu", "rich.progress"}
    assert heavy & set(done.stdout.split()) == set()


def test_error_for_people_is_one_line_on_standard_error_and_exit_code_2():
    done = run(sys.executable, "-m", "regard", "data", "show", "phrasebok")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("regard: 'phrasebok' is neither a file nor a data set.")
    assert done.stderr.count("\n") == 1


def test_anything_else_keeps_its_traceback(regard, monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr("regard.data.datasets.catalog.find_data", fail)
    with pytest.raises(ZeroDivisionError):
        regard("data", "show", "copy")


def test_interrupt_is_told_in_one_line(regard, monkeypatch):
    def interrupt(*_, **__):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("regard.data.datasets.catalog.find_data", interrupt)
    # A shell that starts the tests in the background has them ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        answer = regard("data", "show", "copy")
    finally:
        signal.signal(signal.SIGINT, before)
    assert (answer.code, answer.err) == (130, "regard: interrupted.\n")


@pytest.mark.skipif(os.name == "nt", reason="pipes end otherwise on Windows")
def test_reader_that_has_had_enough_is_no_error():
    command = f"{sys.executable} -m regard data show copy --num 10000"
    done = run("bash", "-o", "pipefail", "-c", f"{command} | head -n 1")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("words", "is_said"), [(("--verbose",), True), ((), False)])
def test_more_is_said_when_asked_for(regard, monkeypatch, words, is_said):
    def speak(*_, **__):
        logger.debug("in detail")
        raise DataError("Enough.")

    monkeypatch.setattr("regard.data.datasets.catalog.find_data", speak)
    assert ("in detail" in regard(*words, "data", "show", "copy").err) == is_said
