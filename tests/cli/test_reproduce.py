import pytest

from regard.core.files import read_json
from regard.studies.reproduce.findings import REPRODUCTIONS, Findings, Relation


@pytest.fixture
def shower(monkeypatch):
    """A row for an experiment that takes no time: it rains if the seed is even."""

    def make(seed, _folder):
        relations = (Relation("It rains.", seed % 2 == 0),)
        return Findings("Weather", "Looked out.", {"today": {"drops": 7.0}}, relations, {})

    monkeypatch.setitem(REPRODUCTIONS, "shower", "regard.studies.reproduce.findings:shower")
    monkeypatch.setattr("regard.studies.reproduce.findings.shower", make, raising=False)


def test_numbers_and_verdicts_of_an_experiment_are_printed(regard, tmp_path):
    answer = regard("reproduce", "nadaraya-watson", "--out", tmp_path / "made")
    assert answer.code == 0
    assert "learned width" in answer.out
    assert "yes  Its curve is less smooth." in answer.lines


def test_last_line_is_the_page(regard, shower, tmp_path):
    answer = regard("reproduce", "shower", "--seed", 2, "--out", tmp_path / "made")
    assert answer.lines[-1] == str(tmp_path / "made" / "report.html")
    assert (tmp_path / "made" / "report.html").exists()


def test_without_a_folder_it_goes_to_runs(regard, shower, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    regard("reproduce", "shower", "--seed", 2)
    assert read_json(tmp_path / "runs" / "shower" / "results.json")["seed"] == 2


def test_exit_code_is_one_if_a_relation_does_not_hold(regard, shower, tmp_path):
    answer = regard("reproduce", "shower", "--seed", 3, "--out", tmp_path)
    assert answer.code == 1
    assert "NO   It rains." in answer.lines


def test_unknown_experiment_is_refused(refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    message = refused("reproduce", "nadaraya-wattson")
    assert message == (
        "`name` must be one of 'nadaraya-watson', 'show-attend-tell', 'sentence-vectors', but is "
        "'nadaraya-wattson'. Did you mean 'nadaraya-watson'?"
    )
    assert list(tmp_path.iterdir()) == []
