import logging
from dataclasses import dataclass

import pytest
from typer.testing import CliRunner

from regard.cli.main import app


@dataclass(frozen=True)
class Result:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def lines(self):
        return self.out.splitlines()


@pytest.fixture(autouse=True)
def untouched_logger():
    """Restore the package's logger, which commands reconfigure."""
    logger = logging.getLogger("regard")
    before = (logger.handlers[:], logger.level, logger.propagate)
    yield
    logger.handlers[:], level, logger.propagate = before
    logger.setLevel(level)


@pytest.fixture
def regard():
    """Function that runs a command in this process; unexpected errors are raised."""

    def run(*arguments, stdin=None):
        runner = CliRunner()
        result = runner.invoke(
            app, [str(argument) for argument in arguments], input=stdin, catch_exceptions=False
        )
        return Result(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def refused(regard):
    """Function that runs a command, expects exit code 2 and returns its one-line message."""

    def run(*arguments, stdin=None):
        result = regard(*arguments, stdin=stdin)
        assert result.code == 2, result
        *before, last = result.err.splitlines()
        assert last.startswith("regard: ")
        assert last.endswith((".", "?"))
        # Messages of earlier steps are allowed.
        steps = ("Data: ", "Recipe: ", "Model: ", "Test set of the run: ")
        assert all(line.startswith(steps) for line in before), before
        return last.removeprefix("regard: ")

    return run


@pytest.fixture
def pairs(tmp_path):
    """A TSV file of sixty pairs: letters and the same letters in reverse."""
    lines = []
    for number in range(60):
        letters = ["abcde"[number % 5], "abcde"[number // 5 % 5], "abcde"[number // 25]]
        lines.append(f"{' '.join(letters)}\t{' '.join(reversed(letters))}\n")
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(lines), encoding="utf-8")
    return path
