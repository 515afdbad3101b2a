import pytest

from regard.core.files import read_json
from regard.studies import reproduction
from regard.studies.findings import Findings, Relation


def test_numbers_and_verdicts_are_printed(regard, tmp_path):
    answer = regard("reproduce", "nadaraya-watson", "--out", tmp_path / "made")
    assert answer.code == 0
    assert "learned width" in answer.out
    assert "yes  Its curve is less smooth." in answer.lines


def test_last_line_is_the_page(regard, tmp_path):
    answer = regard("reproduce", "nadaraya-watson", "--out", tmp_path / "made")
    assert answer.lines[-1] == str(tmp_path / "made" / "report.html")
    assert (tmp_path / "made" / "report.html").exists()


def test_without_a_folder_it_goes_to_runs(regard, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    regard("reproduce", "nadaraya-watson", "--seed", 2)
    assert read_json(tmp_path / "runs" / "nadaraya-watson" / "results.json")["seed"] == 2


def test_unknown_experiment_is_refused(refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    message = refused("reproduce", "nadaraya-wattson")
    assert message == (
        "`name` must be one of 'nadaraya-watson', but is 'nadaraya-wattson'. "
        "Did you mean 'nadaraya-watson'?"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def disappointing(monkeypatch):
    findings = Findings("t", "a", {"row": {"error": 1.0}}, (Relation("It rains.", False),), {})
    monkeypatch.setitem(reproduction.REPRODUCTIONS, "disappointing", lambda seed: findings)


def test_exit_code_is_one_if_a_relation_does_not_hold(regard, disappointing, tmp_path):
    answer = regard("reproduce", "disappointing", "--out", tmp_path)
    assert answer.code == 1
    assert "NO   It rains." in answer.lines
