import pytest

from regard.core.files import read_json
from regard.studies.reproduce.findings import REPRODUCTIONS, Findings, Relation


@pytest.fixture
def shower(monkeypatch):
    """Entry for a trivial experiment, whose claim holds if the seed is even."""

    def make(seed, _folder):
        relations = (Relation("It rains.", seed % 2 == 0),)
        return Findings("Weather", "Observed rain.", {"today": {"drops": 7.0}}, relations, {})

    monkeypatch.setitem(REPRODUCTIONS, "shower", "regard.studies.reproduce.findings:shower")
    monkeypatch.setattr("regard.studies.reproduce.findings.shower", make, raising=False)


def test_numbers_and_claims_of_an_experiment_are_printed(regard, tmp_path):
    result = regard("reproduce", "nadaraya-watson", "--out", tmp_path / "out")
    assert result.code == 0
    assert "learned width" in result.out
    assert "yes  The learned curve is less smooth." in result.lines


def test_last_line_is_the_path_of_the_report(regard, shower, tmp_path):
    result = regard("reproduce", "shower", "--seed", 2, "--out", tmp_path / "out")
    assert result.lines[-1] == str(tmp_path / "out" / "report.html")
    assert (tmp_path / "out" / "report.html").exists()


def test_default_folder_is_in_runs(regard, shower, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    regard("reproduce", "shower", "--seed", 2)
    assert read_json(tmp_path / "runs" / "shower" / "results.json")["seed"] == 2


def test_exit_code_is_one_if_a_relation_does_not_hold(regard, shower, tmp_path):
    result = regard("reproduce", "shower", "--seed", 3, "--out", tmp_path)
    assert result.code == 1
    assert "NO   It rains." in result.lines


def test_unknown_experiment_is_refused(refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    message = refused("reproduce", "nadaraya-wattson")
    assert message == (
        "`name` must be one of 'nadaraya-watson', 'show-attend-tell', 'sentence-vectors', but is "
        "'nadaraya-wattson'. Did you mean 'nadaraya-watson'?"
    )
    assert list(tmp_path.iterdir()) == []
