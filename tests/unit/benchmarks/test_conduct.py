import argparse
import sys
from pathlib import Path

import pytest

from regard.core.files import read_json, write_json
from regard.runs import folder as runs

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def conduct(monkeypatch):
    """The module, imported as scripts do: beside its neighbours."""
    before = {*sys.modules}
    monkeypatch.syspath_prepend(BENCHMARKS)
    import conduct

    yield conduct
    for name in {*sys.modules} - before:
        if Path(getattr(sys.modules[name], "__file__", None) or ".").parent == BENCHMARKS:
            del sys.modules[name]


@pytest.fixture
def plan(conduct):
    """Four runs, the last of which begins with the first."""
    first, *others = [conduct.Run(name, "x", ()) for name in ("first", "second run", "third")]
    last = conduct.Run("last", "x", (), needs=(first.folder,))
    return lambda _folder: [first, *others, last]


@pytest.fixture
def asked(conduct, plan, monkeypatch, tmp_path):
    """Ask for all of an experiment as a person does, with further words."""

    def ask(*words):
        places = ["--runs", str(tmp_path), "--out", str(tmp_path)]
        monkeypatch.setattr(sys, "argv", ["benchmarks/x.py", "own", *places, *words])
        return conduct.arguments(argparse.ArgumentParser(), {"own": plan})

    return ask


@pytest.fixture
def trained(conduct, monkeypatch):
    """The names of what is trained."""
    found = []

    def train_all(planned, **_):
        for run, folder in planned:
            found.append(run.name)
            write_json(folder / run.folder / runs.METRICS, {})

    monkeypatch.setattr(conduct, "train_all", train_all)
    return found


def gather(run, place):
    if run.name == "third":
        raise ValueError("no such file")
    return {"name": run.name}


def told(folder):
    return [run["name"] for run in read_json(folder / "own.json")["runs"]]


def test_named_runs_are_trained_with_what_they_need(conduct, plan, asked, trained, tmp_path):
    conduct.experiments({"own": plan}, asked("--only", "second run,last"), gather=gather)
    assert trained == ["first", "second run", "last"]
    assert told(tmp_path) == trained
    assert "--only 'second run,last'" in read_json(tmp_path / "own.json")["command"]


def test_what_was_finished_before_is_gathered_too(conduct, plan, asked, trained, tmp_path):
    conduct.experiments({"own": plan}, asked("--only", "first"), gather=gather)
    conduct.experiments({"own": plan}, asked("--only", "second run"), gather=gather)
    assert told(tmp_path) == ["first", "second run"]


def test_a_name_that_no_run_has_is_refused(conduct, plan, asked, trained):
    with pytest.raises(SystemExit, match=r"'secondrun' is none. Did you mean 'second run'\?"):
        conduct.experiments({"own": plan}, asked("--only", "secondrun"), gather=gather)
    assert not trained


def test_what_cannot_be_gathered_costs_nothing_else(conduct, plan, asked, trained, tmp_path):
    def join(_name, _folder):
        raise SystemExit("a command ended with 1")

    with pytest.raises(SystemExit, match="third-seed1, own together"):
        conduct.experiments({"own": plan}, asked(), gather=gather, join=join)
    assert told(tmp_path) == ["first", "second run", "last"]
    assert read_json(tmp_path / "own.json")["together"] == []


def test_results_stay_if_nothing_is_finished(conduct, plan, asked, trained, tmp_path):
    write_json(tmp_path / "own.json", {"runs": [{"name": "before"}]})
    conduct.experiments({"own": plan}, asked("--gather"), gather=gather)
    assert told(tmp_path) == ["before"] and not trained


def test_where_data_and_runs_lie_is_not_told(conduct, monkeypatch, tmp_path):
    monkeypatch.setenv("REGARD_DATA", "/somewhere/data")
    place = tmp_path / "speech" / "one-seed1"
    told = conduct.without_places(
        f"train /somewhere/data/a.tsv --out {place} init_from={place}", place
    )
    assert (
        told
        == "train $REGARD_DATA/a.tsv --out runs/speech/one-seed1 init_from=runs/speech/one-seed1"
    )
