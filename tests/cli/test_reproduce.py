import pytest

from regard.core.files import read_json
from regard.studies.reproduce import catalog, gallery
from regard.studies.reproduce.catalog import Experiment, experiments
from regard.studies.reproduce.findings import Claim, Findings


@pytest.fixture
def shower(monkeypatch):
    """Entry for a trivial experiment, whose claim holds if the seed is even."""

    def make(seed, _folder):
        claims = (Claim("It rains.", "7 drops", seed % 2 == 0),)
        return Findings(tables={"Rain": {"today": {"drops": 7.0}}}, claims=claims, plots={})

    entry = Experiment(
        name="shower",
        chapter="neurons",
        title="Weather",
        summary="It rains if the seed is even.",
        description="Observed rain.",
        topics=("1.1",),
        seconds=1,
        function="regard.studies.reproduce.catalog:shower",
    )
    monkeypatch.setattr("regard.studies.reproduce.catalog.shower", make, raising=False)
    for module in ("running", "gallery", "catalog"):
        path = f"regard.studies.reproduce.{module}.experiments"
        monkeypatch.setattr(path, lambda: {"shower": entry})


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


def test_exit_code_is_one_if_a_claim_does_not_hold(regard, shower, tmp_path):
    result = regard("reproduce", "shower", "--seed", 3, "--out", tmp_path)
    assert result.code == 1
    assert "NO   It rains." in result.lines
    assert "     7 drops" in result.lines


def test_list_names_every_experiment(regard):
    result = regard("reproduce", "--list")
    assert result.code == 0
    for name, experiment in experiments().items():
        assert any(name in line and experiment.summary in line for line in result.lines)


def test_unknown_experiment_is_refused(refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    message = refused("reproduce", "nadaraya-wattson")
    assert message.endswith("but is 'nadaraya-wattson'. Did you mean 'nadaraya-watson'?")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [(), ("nadaraya-watson", "--all"), ("--all", "--list")])
def test_one_of_name_all_and_list_is_needed(refused, arguments):
    assert "--all or --list" in refused("reproduce", *arguments)


@pytest.fixture
def gallery_of_two(monkeypatch):
    """A catalogue of a fast experiment, and of one that cannot be imported."""
    fast = experiments()["nadaraya-watson"]
    missing = Experiment(**{**vars(fast), "name": "missing"})
    monkeypatch.setattr(gallery, "experiments", lambda: {fast.name: fast, "missing": missing})


def test_gallery_links_to_pages_and_to_the_messages_of_a_failed_experiment(
    regard, gallery_of_two, tmp_path
):
    result = regard("reproduce", "--all", "--out", tmp_path)
    assert result.code == 1
    assert result.lines[-1] == str(tmp_path / "index.html")
    assert any("missing" in line and "failed" in line for line in result.lines)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert 'href="nadaraya-watson/report.html"' in page
    assert 'src="nadaraya-watson/nadaraya-watson.png"' in page
    assert (tmp_path / "nadaraya-watson" / "nadaraya-watson.png").exists()
    assert "1 of 2" in page and "6 of 6 claims hold" in page
    assert 'href="missing/log.txt"' in page
    assert "`name` must be one of" in (tmp_path / "missing" / "log.txt").read_text("utf-8")
    summary = read_json(tmp_path / "gallery.json")
    assert list(summary["experiments"]) == ["nadaraya-watson"]
    assert all(claim["holds"] for claim in summary["experiments"]["nadaraya-watson"]["claims"])


def test_catalogue_is_in_the_order_of_the_lectures():
    chapters = [experiment.chapter for experiment in experiments().values()]
    order = list(catalog.CHAPTERS)
    assert chapters == sorted(chapters, key=order.index)
