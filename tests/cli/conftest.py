import logging
from dataclasses import dataclass

import pytest
from typer.testing import CliRunner

from regard.cli.main import app


@dataclass(frozen=True)
class Answer:
    """What a command leaves behind."""

    code: int
    out: str
    err: str

    @property
    def lines(self):
        return self.out.splitlines()


@pytest.fixture(autouse=True)
def untouched_logger():
    """A command sends the package's messages elsewhere; the next test has them as before."""
    logger = logging.getLogger("regard")
    before = (logger.handlers[:], logger.level, logger.propagate)
    yield
    logger.handlers[:], level, logger.propagate = before
    logger.setLevel(level)


@pytest.fixture
def regard():
    """The command as a person types it, in this process; anything but its own errors is raised."""

    def run(*words, stdin=None):
        runner = CliRunner()
        found = runner.invoke(
            app, [str(word) for word in words], input=stdin, catch_exceptions=False
        )
        return Answer(found.exit_code, found.stdout, found.stderr)

    return run


@pytest.fixture
def refused(regard):
    """A command that must end with exit code 2 and one line for people; returns the line."""

    def run(*words, stdin=None):
        answer = regard(*words, stdin=stdin)
        assert answer.code == 2, answer
        *before, last = answer.err.splitlines()
        assert last.startswith("regard: ")
        assert last.endswith((".", "?"))
        # What went well until then may have been told.
        assert all(line.startswith(("Data: ", "Recipe: ", "Model: ")) for line in before), before
        return last.removeprefix("regard: ")

    return run


@pytest.fixture
def pairs(tmp_path):
    """A TSV file of sixty pairs: letters and the same letters backwards."""
    lines = []
    for number in range(60):
        letters = ["abcde"[number % 5], "abcde"[number // 5 % 5], "abcde"[number // 25]]
        lines.append(f"{' '.join(letters)}\t{' '.join(reversed(letters))}\n")
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(lines), encoding="utf-8")
    return path
