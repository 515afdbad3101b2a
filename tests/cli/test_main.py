import os
import shlex
import signal
import subprocess
import sys

import pytest
import typer

import regard as package
from regard.cli.examples import EXAMPLES
from regard.cli.main import COMMANDS, app
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
    result = regard()
    assert (result.code, result.err) == (0, "")
    assert "Model commands:" in result.out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_can_be_imported(name):
    assert callable(resolve(COMMANDS[name]))


def test_command_imports_no_other_command():
    code = "from regard.cli.main import app; app(['data', 'list'], standalone_mode=False)"
    done = run(sys.executable, "-c", f"{code}; import sys; print(*sys.modules)")
    loaded = {name for name in done.stdout.split() if name.startswith("regard.cli.model.")}
    assert loaded == set()


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("trian",), ("'trian' is not a command of `regard`", "'train'")),
        (("data", "sho"), ("'sho' is not a command of `regard data`", "'show'")),
        (("--versoin",), ("`--versoin` is not an option of `regard`", "'--version'")),
        (("predict", "run", "--beems", "3"), ("`--beems`", "`regard predict`", "'--beam'")),
        (("predict", "run", "-x"), ("`-x`", "regard predict --help")),
        (("predict", "run", "--beam"), ("--beam", "requires an argument")),
        (("predict", "run", "--beam", "x"), ("--beam", "integer")),
        (("predict",), ("`regard predict` needs RUN", EXAMPLES["predict"])),
        (("train",), ("`regard train` needs DATA", EXAMPLES["train"])),
        (("show", "run"), ("`regard show` needs SOURCE", EXAMPLES["show"])),
        (("export", "hf", "run"), ("`regard export hf` needs --out", EXAMPLES["export hf"])),
        (("embed", "run", "a.txt", "-o", "v.npy", "train.seed=1"), ("overrides", "train.seed=1")),
        (("embed", "run", "two", "words", "-o", "v.npy"), ("'words'", "quotes", "FILE|DATA")),
        (("predict", "run", "two", "words"), ("two, words", "quotes")),
        (("score", "run", "search.beams=1"), ("'search.beams=1'", "does not search")),
        (("predict", "run", "beams=1"), ("'beams=1'", "search.key=value", "standard input")),
        (("chat", "run", "hello"), ("'hello'", "search.key=value")),
        (("show", "run", "search.beams=1"), ("No source",)),
        (("evaluate", "run", "--columns", "source"), ("run", "folder")),
    ],
)
def test_usage_error_is_one_line_with_what_to_do(refused, arguments, parts):
    message = refused(*arguments)
    assert [part for part in parts if part not in message] == []


@pytest.mark.parametrize("command", ["", *EXAMPLES])
def test_help_is_complete_within_80_columns(regard, command):
    result = regard(*command.split(), "-h")
    assert result.code == 0
    assert result.out == regard(*command.split(), "--help").out
    _usage, *lines = result.out.splitlines()
    assert [line for line in lines if len(line) > 80 or line.endswith("...")] == []


def all_commands():
    """Yield the path of each command, without groups, and the command."""
    root = typer.main.get_command(app)
    context = root.make_context("regard", ["--verbose"])
    for name in COMMANDS:
        command = root.get_command(context, name)
        if hasattr(command, "commands"):
            for inner in command.list_commands(context):
                yield f"{name} {inner}", command.get_command(context, inner)
        else:
            yield name, command


ALL = dict(all_commands())


def test_every_command_has_an_example():
    assert list(EXAMPLES) == list(ALL)


@pytest.mark.parametrize("name", ALL)
def test_example_is_valid(name):
    program, *words = shlex.split(EXAMPLES[name])
    assert program == "regard"
    assert " ".join(words).startswith(name)
    rest = words[len(name.split()) :]
    assert ALL[name].make_context(name, rest).args == []


@pytest.mark.parametrize("name", ALL)
def test_every_argument_and_option_is_described(name):
    params = [param for param in ALL[name].params if not param.help]
    assert params == []


SHARED = {
    "--out": "-o",
    "--quiet": "-q",
    "--num": "-n",
    "--json": None,
    "--device": None,
    "--threads": None,
    "--seed": None,
    "--columns": None,
}
"""Options with one meaning in all commands, and their short form."""


@pytest.mark.parametrize("name", ALL)
def test_options_are_the_same_in_every_command(name):
    options = {option: param for param in ALL[name].params for option in param.opts}
    for option, short in SHARED.items():
        if option in options:
            assert short is None or short in options[option].opts
    assert "--quiet" in options
    assert ("--threads" in options) == ("--device" in options)
    if "--json" in options:
        assert options["--json"].is_flag


SEARCHING = ["predict", "chat", "evaluate", "show", "sample", "interpolate"]


@pytest.mark.parametrize("name", SEARCHING)
def test_commands_that_search_take_overrides_and_beams(name):
    assert "search.key=value" in ALL[name].usage()
    assert any("--beam" in param.opts for param in ALL[name].params)


def test_threads_are_set_before_the_command(regard, monkeypatch):
    given = []
    monkeypatch.setattr("regard.core.device.set_threads", given.append, raising=False)
    regard("predict", "run", "--threads", 3)
    assert given == [3]


@pytest.mark.parametrize("arguments", [("-q", "data", "show", "copy"), ("data", "show", "-q", "x")])
def test_quiet_logs_warnings_only(regard, monkeypatch, arguments):
    def log_and_fail(*_, **__):
        logger.info("notice")
        logger.warning("warning")
        raise DataError("Enough.")

    monkeypatch.setattr("regard.data.datasets.catalog.find_data", log_and_fail)
    assert regard(*arguments).err.splitlines() == ["warning", "regard: Enough."]


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
