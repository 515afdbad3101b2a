"""The runner trains, gathers and checks."""

import sys

import pytest
import run
from plan import Run
from results import read_results

from regard.runs import folder as runs

TINY = """
title = "Tiny"
overrides = ["train.max_steps=2", "train.validate_every=2", "search.beams=1"]
gather = { samples = 2 }
expect = [
    { run = "second", metric = "bleu", at_least = 0 },
    { run = "first", metric = "bleu", at_least = 101 },
]
[[runs]]
name = "first"
recipe = "cho2014-laptop"
data = ["reverse:60,2-4"]
[[runs]]
name = "second"
recipe = "cho2014-laptop"
data = ["reverse:60,2-4"]
overrides = ["init_from={run:first}"]
"""


def test_two_dependent_runs_are_trained_and_an_expectation_that_fails_is_reported(
    tmp_path, monkeypatch, capsys
):
    plan = tmp_path / "tiny.toml"
    plan.write_text(TINY, encoding="utf-8")
    words = ["run.py", str(plan), "--jobs", "2", "--runs", str(tmp_path / "runs")]
    monkeypatch.setattr(sys, "argv", [*words, "--out", str(tmp_path)])
    with pytest.raises(SystemExit, match="expectation: bleu of first .* is at least 101"):
        run.main()
    value = read_results(tmp_path / "tiny.json")
    assert [row["name"] for row in value["runs"]] == ["first", "second"]
    assert value["runs"][1]["overrides"][-1] == "init_from=runs/tiny/first-seed1"
    assert [one["holds"] for one in value["expectations"]] == [True, False]
    assert len(value["runs"][0]["samples"]) == 2
    assert "holds: bleu of second" in capsys.readouterr().out


@pytest.fixture
def trained(monkeypatch):
    """Folders of trained runs in the order in which they end."""
    found = []
    monkeypatch.setattr(run, "_train", lambda _run, folder, **_: found.append(folder))
    return found


def train_all(*planned):
    run.train_all([*planned], jobs=2, threads=1, overrides=[])


def test_a_run_waits_for_those_it_needs(trained, tmp_path):
    first, second, third = tmp_path / "a/1-seed1", tmp_path / "b/2-seed1", tmp_path / "b/3-seed1"
    train_all(
        (Run("1", "x", ()), first),
        (Run("2", "x", (), needs=("a/1-seed1",)), second),
        (Run("3", "x", (), needs=("b/2-seed1",)), third),
    )
    assert trained == [first, second, third]


def test_a_needed_run_must_be_planned_or_finished(trained, tmp_path):
    second = (Run("2", "x", (), needs=("a/1-seed1",)), tmp_path / "b/2-seed1")
    with pytest.raises(SystemExit, match="2-seed1 needs .*1-seed1"):
        train_all(second)
    (tmp_path / "a/1-seed1").mkdir(parents=True)
    (tmp_path / "a/1-seed1" / runs.METRICS).write_text("{}", encoding="utf-8")
    train_all(second)
    assert trained == [second[1]]
