import pytest
from matplotlib.figure import Figure

from regard.core.files import read_json
from regard.studies.reproduce.findings import REPORT, RESULTS, Findings, Plot, Relation


def build(*relations):
    return Findings(
        title="A <b>bold</b> claim",
        description="A description.",
        numbers={"first": {"error": 0.25, "width": 1.0}, "second": {"error": 0.5, "width": 2.0}},
        relations=relations or (Relation("It holds.", True),),
        plots={"plot": Plot(Figure(figsize=(1, 1)), "A caption.")},
    )


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "new" / "folder"
    build(Relation("It holds.", True), Relation("It does not.", False)).save(folder, {"seed": 7})
    return folder


def test_folder_holds_numbers_page_and_plots(folder):
    names = {path.name for path in folder.iterdir()}
    assert names == {RESULTS, REPORT, "plot.svg", "plot.png"}


def test_results_hold_provenance_numbers_and_relations(folder):
    results = read_json(folder / RESULTS)
    assert results["seed"] == 7
    assert results["numbers"]["second"] == {"error": 0.5, "width": 2.0}
    assert [relation["holds"] for relation in results["relations"]] == [True, False]


def test_page_counts_the_relations_that_hold(folder):
    assert "1 of 2" in (folder / REPORT).read_text(encoding="utf-8")


def test_page_shows_the_plots(folder):
    page = (folder / REPORT).read_text(encoding="utf-8")
    assert "<svg" in page
    assert "A caption." in page


def test_page_escapes_text(folder):
    assert "<b>bold</b>" not in (folder / REPORT).read_text(encoding="utf-8")


def test_metric_names_are_in_order():
    assert build().metric_names == ["error", "width"]


@pytest.mark.parametrize(("holds", "expected"), [(True, True), (False, False)])
def test_findings_are_as_expected_if_every_relation_holds(holds, expected):
    assert build(Relation("a", True), Relation("b", holds)).is_as_expected is expected
