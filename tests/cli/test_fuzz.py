"""Generated command lines end with an exit code, never with a traceback."""

import faulthandler
import signal

import pytest
import torch
import typer

from regard.cli.main import COMMANDS, app
from tests.command_lines import CommandLines, write_files
from tests.fixtures.tasks import TASK_CASES

LONG = ("bench", "demo", "ladder", "reproduce")
"""Commands that train several models, which takes too long."""

SECONDS = 60
"""Maximum time of a command."""

TINY = ("train.max_steps=1",)


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


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module")
def command_lines(folder, tiny_run, task_run):
    runs = [str(tiny_run.folder), *(str(task_run(name).folder) for name in TASK_CASES)]
    commands = {name: one for name, one in all_commands() if not name.startswith(LONG)}
    return CommandLines(commands, runs=runs, files=write_files(folder))


@pytest.fixture
def check(regard, folder, command_lines, monkeypatch):
    """Function that runs a generated command line and checks its end."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("REGARD_CACHE", str(folder / "cache"))
    monkeypatch.delenv("REGARD_DATA", raising=False)

    def late(*_):
        faulthandler.dump_traceback()
        raise TimeoutError

    previous = signal.signal(signal.SIGALRM, late)

    def check(seed):
        words, stdin = command_lines.generate(seed)
        if words[0] == "train":
            words += TINY
        signal.alarm(SECONDS)
        try:
            result = regard(*words, stdin=stdin)
        except BaseException as error:
            error.add_note(f"seed {seed}: {words}")
            raise
        finally:
            signal.alarm(0)
        assert result.code in (0, 1, 2), (words, result)
        if result.code == 2:
            assert result.err.splitlines()[-1].startswith("regard: "), (words, result)
        assert "Traceback" not in result.err, (words, result)

    yield check
    signal.signal(signal.SIGALRM, previous)
    torch.set_num_threads(1)


@pytest.mark.parametrize("seed", range(40))
def test_generated_command_line_ends_without_a_traceback(check, seed):
    check(seed)


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(40, 540))
def test_further_generated_command_lines_end_without_a_traceback(check, seed):
    check(seed)
