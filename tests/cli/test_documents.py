"""Commands and code in the documents are valid."""

import re
import shlex
import shutil
import sys
from operator import attrgetter
from pathlib import Path
from unittest.mock import Mock, call

import pytest
import typer

from regard.bench.decode.peers.table import PEERS as DECODE_PEERS
from regard.bench.peers.table import PEERS
from regard.bench.sizes import SIZES, find_size
from regard.cli.arguments import split_arguments
from regard.cli.main import app
from regard.core.files import read_json_lines
from regard.runs.recipes import load_recipe, recipe_names, recipe_path
from regard.training.loggers.logger import scalars

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "lectures").glob("*.md")),
]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Placeholders such as RUN or …, to be filled in.
PLACEHOLDER = re.compile(r"\b[A-Z]{2,}\b|…|<\w+>")


def blocks(language):
    """Code blocks of the pages in some languages."""
    return [
        pytest.param(code, id=f"{page.name}-{number}")
        for page in PAGES
        for number, (name, code) in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")))
        if name in language
    ]


def commands():
    """Lines of the pages and recipes that call `regard`."""
    lines = [
        line
        for block in blocks(("", "sh", "bash", "console"))
        for line in block.values[0].splitlines()
    ]
    for name in recipe_names():
        lines += [line[1:] for line in recipe_path(name).read_text(encoding="utf-8").splitlines()]
    called = (line.strip().removeprefix("$ ") for line in lines)
    return sorted(
        line
        for line in set(called)
        if re.match(r"regard [a-z-]", line) and not PLACEHOLDER.search(line.partition("#")[0])
    )


def parse(line):
    """Parse a command line without running it; return the command with its group, and options."""
    arguments = shlex.split(line.split(" | ")[0], comments=True)[1:]
    command = typer.main.get_command(app)
    context = None
    while True:
        context = command.make_context(command.name, list(arguments), parent=context)
        if not hasattr(command, "resolve_command"):
            return context.command_path.partition(" ")[2], context.params
        _, command, arguments = command.resolve_command(
            context, [*context._protected_args, *context.args]
        )


@pytest.fixture
def working_directory(tiny_run, tmp_path, monkeypatch):
    """Working directory with only a trained model in runs/mine."""
    shutil.copytree(tiny_run.folder, tmp_path / "runs" / "mine")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def trackers(monkeypatch):
    """Experiment trackers in place of packages that are not installed; each keeps its calls."""
    wandb, mlflow = Mock(), Mock()
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    return {"wandb": wandb.init.return_value, "mlflow": mlflow}


@pytest.mark.parametrize("code", blocks(("python",)))
def test_python_code_of_a_page_runs(code, working_directory, trackers, capsys):
    exec(compile(code, "page", "exec"), {"__name__": "page"})


@pytest.mark.parametrize(
    ("name", "log", "close"), [("wandb", "log", "finish"), ("mlflow", "log_metrics", "end_run")]
)
def test_tracker_of_a_page_gets_the_training_log(name, log, close, working_directory, trackers):
    (code,) = [
        block
        for (block,) in map(attrgetter("values"), blocks(("python",)))
        if f"import {name}" in block
    ]
    exec(compile(code, "page", "exec"), {"__name__": "page"})
    rows = read_json_lines(Path("runs", name, "journal.jsonl"))
    expected = [call(scalars(row), step=row["step"]) for row in rows]
    assert getattr(trackers[name], log).call_args_list == expected
    assert any(logged.args[0].get("valid/loss") for logged in expected)
    getattr(trackers[name], close).assert_called_once_with()


def test_pages_contain_commands():
    assert len(commands()) > 8


@pytest.mark.parametrize("line", commands())
def test_command_of_a_page_is_valid(line):
    command, given = parse(line)
    if command == "train":
        _, settings = split_arguments(list(given["data"]), max_paths=2)
        load_recipe(given["recipe"] or "bahdanau2015", settings)
    if command == "bench train":
        assert {find_size(name) for name in given["size"].split(",") if name} <= {*SIZES.values()}
        assert set(given["peer"].split(",")) <= set(PEERS)
    if command == "bench decode":
        assert set(given["peer"].split(",")) <= set(DECODE_PEERS)
    if command == "explain":
        load_recipe(given["recipe"], given["settings"] or [])
