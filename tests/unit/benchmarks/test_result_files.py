"""Result files are small and complete, and pages are generated from them."""

import json
import re
from pathlib import Path

import pages
import pytest
from plan import RESULTS, read_plans
from results import MAX_POINTS, overrides_of, read_results, summarise, write_results

FILES = sorted(RESULTS.glob("*.json"))
PLANS = read_plans()


def test_result_files_are_small():
    assert {path.name: size for path in FILES if (size := path.stat().st_size) > 61_440} == {}
    assert sum(path.stat().st_size for path in RESULTS.iterdir()) <= 4_000_000


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_result_files_have_provenance(path):
    value = read_results(path)
    assert "python benchmarks/run.py" in value["command"] or value["command"].startswith("regard")
    for run in value["runs"] or [value]:
        assert {"hardware", "torch", "commit"} <= {*run}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_pages_are_up_to_date(plan, tmp_path):
    names = plan.results or [f"{plan.name}.json"]
    if plan.shown_in or not any((RESULTS / name).exists() for name in names):
        return
    pages.write_page(plan, RESULTS, tmp_path)
    page = (tmp_path / f"{plan.name}.md").read_text(encoding="utf-8")
    assert page == (RESULTS / f"{plan.name}.md").read_text(encoding="utf-8")
    for plot in re.findall(r"\]\(([\w.-]+\.(?:svg|png))\)", page):
        assert (RESULTS / plot).exists(), plot


def test_recipe_tables_are_up_to_date():
    path = RESULTS.parent / "recipes.md"
    assert pages.recipes_page(RESULTS) == path.read_text(encoding="utf-8")


def test_recipes_show_only_their_own_scores(tmp_path):
    folder = tmp_path / "results"
    row = {"name": "x", "recipe": "vaswani2017-small", "seed": 1, "hardware": "h", "data": "d"}
    row |= {"training": {}, "overrides": []}
    test = {"scores": {"bleu": {"value": 12.3, "name": "BLEU", "signature": "s"}}}
    changed = {**row, "recipe": "cho2014", "overrides": ["train.max_steps=1"], "test": test}
    write_results(folder / "multi30k.json", {"runs": [{**row, "test": test}, changed]})
    lines = {
        line.split("`")[1]: line
        for line in pages.recipes_page(folder).splitlines()
        if "| `" in line
    }
    assert "12.3 BLEU" in lines["vaswani2017-small"]
    for name in ("vaswani2017-base", "vaswani2017-big", "cho2014"):
        assert "not measured" in lines[name]


def test_a_summary_keeps_what_the_plan_names_and_thins_curves():
    row = {
        "name": "a", "recipe": "r", "seed": 1, "parameters": 5, "training": {"seconds": 1.23456789},
        "command": "regard train d --valid v --recipe r --out o seed=1 a=1 b=[1, 2] a=2",
        "settings": {"train": {"max_steps": 9}},
        "validations": [{"step": n, "loss": 1 / (n + 1), "value": n} for n in range(200)],
        "test": {"scores": {"bleu": {"value": 1.0, "signature": "s", "detail": {}}, "chrf": {}}},
    }  # fmt: skip
    keep = {"scores": ["bleu"], "curve": ["step", "loss"], "settings": ["train.max_steps"]}
    found = summarise(row, keep)
    assert (found["data"], found["overrides"]) == ("d", ["a=2", "b=[1, 2]"])
    assert found["test"]["scores"] == {"bleu": {"value": 1.0, "signature": "s"}}
    assert found["settings"] == {"train.max_steps": 9}
    assert found["training"] == {"seconds": 1.23457}
    assert len(found["curve"]["step"]) <= MAX_POINTS
    assert (found["curve"]["step"][-1], found["best"]) == (199, 199)
    assert "curve" not in summarise(row, keep, is_first=False)


def test_common_values_stand_once_and_come_back(tmp_path):
    path = tmp_path / "x.json"
    rows = [
        {"name": name, "torch": "2", "overrides": ["a=1", f"b={name}"],
         "test": {"scores": {"bleu": {"value": 1.0, "name": "BLEU", "signature": "s"}},
                  "by_tag": [{"name": "t", "count": 2, "bleu": 3.0}]}}
        for name in "pq"
    ]  # fmt: skip
    expected = json.loads(json.dumps(rows))
    write_results(path, {"runs": rows})
    text = path.read_text(encoding="utf-8")
    assert text.count('"torch"') == text.count('"signature"') == text.count("a=1") == 1
    assert read_results(path)["runs"] == expected


def test_overrides_with_a_data_option_are_not_taken_for_settings():
    assert overrides_of("regard train shapes:only=circle --recipe r seed=2 c=1") == ["c=1"]


def test_plan_names_match_result_files():
    known = {name for plan in PLANS.values() for name in plan.results or [f"{plan.name}.json"]}
    known |= {name for plan in PLANS.values() for name in re.findall(r"[\w-]+\.json", plan.page)}
    # Written by `regard reproduce --all`, for the table of docs/lectures.md.
    known.add("lectures.json")
    assert {Path(path).name for path in FILES} <= known
