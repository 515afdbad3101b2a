import math

import pytest
from matplotlib.figure import Figure

from regard.core.files import read_json
from regard.plots.html import table
from regard.studies.reproduce.findings import REPORT, RESULTS, Claim, Findings, Plot, as_rows


def build(*claims):
    rows = {"first": {"error": 0.25, "kind": "dot"}, "second": {"error": 0.512345, "kind": "mlp"}}
    return Findings(
        tables={"Errors": rows},
        claims=claims,
        plots={"plot": Plot(Figure(figsize=(1, 1)), "A caption.")},
    )


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "new" / "folder"
    claims = Claim("It holds.", "0.25", True), Claim("It does not.", "0.5 < 0.6", False)
    build(*claims).save(
        folder,
        title="A <b>bold</b> claim",
        description="A description.",
        provenance={"seed": 7},
    )
    return folder


def test_folder_holds_numbers_page_and_plots(folder):
    names = {path.name for path in folder.iterdir()}
    assert names == {RESULTS, REPORT, "plot.svg", "plot.png"}


def test_results_hold_provenance_numbers_and_claims(folder):
    results = read_json(folder / RESULTS)
    assert results["seed"] == 7
    assert results["tables"]["Errors"]["second"] == {"error": 0.512345, "kind": "mlp"}
    assert [claim["holds"] for claim in results["claims"]] == [True, False]


def test_page_counts_the_claims_that_hold(folder):
    assert "1 of 2" in (folder / REPORT).read_text(encoding="utf-8")


def test_page_shows_the_plots(folder):
    page = (folder / REPORT).read_text(encoding="utf-8")
    assert "<svg" in page
    assert "A caption." in page


def test_page_escapes_text(folder):
    assert "<b>bold</b>" not in (folder / REPORT).read_text(encoding="utf-8")


def test_page_shows_outcomes_and_rounded_numbers(folder):
    page = (folder / REPORT).read_text(encoding="utf-8")
    assert "0.5 &lt; 0.6" in page
    assert ">0.5123<" in page and ">mlp<" in page


@pytest.mark.parametrize(("holds", "expected"), [(True, True), (False, False)])
def test_findings_are_as_expected_if_every_claim_holds(holds, expected):
    assert build(Claim("a", "1", True), Claim("b", "2", holds)).is_as_expected is expected


def test_large_numbers_are_shown_as_whole_numbers():
    rows = {"a": {"x": 12_345.678, "y": -1_000.4, "z": math.inf, "n": 2_500_000}}
    assert as_rows(rows) == (["", "x", "y", "z", "n"], [["a", 12_346, -1_000, math.inf, 2_500_000]])
    assert ">12,346<" in table(*as_rows(rows))
