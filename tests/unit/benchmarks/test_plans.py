"""Every plan can be run: recipes, settings, needed runs and extractors exist."""

import components
import decoding_tables
import measure
import pytest
import reply_tables
import run as runner
import special
import speed_tables
from plan import RESULTS, check, read_plan, read_plans
from prepare import STEPS
from results import read_results

from regard.runs.recipes import load_recipe

PLANS = read_plans()
NOT_SETTINGS = ("init_from=", "teacher=")


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_recipes_and_overrides_of_a_plan_are_valid(plan):
    for recipe, overrides in {(run.recipe, run.overrides) for run in plan.runs}:
        load_recipe(recipe, [word for word in overrides if not word.startswith(NOT_SETTINGS)])


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_runs_of_a_plan_are_distinct_and_come_after_those_they_need(plan):
    folders = [f"{plan.name}/{run.folder}" for run in plan.runs]
    assert len(folders) == len({*folders})
    for number, run in enumerate(plan.runs):
        for need in run.needs:
            other = need.partition("/")[0]
            known = folders[:number] if other == plan.name else _folders(other)
            assert need in known, run.name


def _folders(name):
    return [f"{name}/{run.folder}" for run in PLANS[name].runs]


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_extractors_and_expectations_of_a_plan_exist(plan):
    assert {*plan.gather} <= {*runner.EVERY_SEED, *runner.FIRST_SEED}
    assert {*plan.join} <= {*runner.JOINED}
    assert {*plan.prepare} <= {*STEPS}
    assert not plan.benchmark or plan.benchmark in measure.BENCHMARKS
    assert plan.shown_in == "" or plan.shown_in in PLANS
    names = {run.name for run in plan.runs}
    if plan.benchmark and plan.expect:  # its runs are named in the result file
        names = {run["name"] for run in read_results(RESULTS / f"{plan.name}.json")["runs"]}
    for one in plan.expect:
        others = [one[key] for key in ("above", "below") if key in one]
        assert {one["run"], *others} <= names


def test_a_matrix_is_expanded_with_seeds_and_needed_runs(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(
        'title = "Tiny"\noverrides = ["a=1"]\n'
        '[[runs]]\nname = "{recipe} {size}"\ndata = ["d:{size}"]\nseeds = [1, 2]\n'
        'overrides = ["init_from={run:other/x y}"]\nmatrix.recipe = ["p", "q"]\n'
        'matrix.size = [{ size = 3, overrides = ["b={size}"] }]\n'
    )
    first, second, *_ = read_plan(path).runs
    assert (first.name, first.data, first.seed, second.seed) == ("p 3", ("d:3",), 1, 2)
    assert first.overrides == ("a=1", "init_from={runs}/other/x-y-seed1", "b=3")
    assert first.needs == ("other/x-y-seed1",)
    assert len(read_plan(path).runs) == 4


@pytest.mark.parametrize(
    ("bound", "holds"),
    [
        ({"at_least": 2}, True),
        ({"at_most": 2}, False),
        ({"above": "b"}, True),
        ({"below": "b"}, False),
    ],
)
def test_expectations_compare_means_with_bounds_and_with_other_runs(bound, holds):
    rows = [_row("a", 2.0), _row("a", 4.0), _row("b", 1.0)]
    claim, found = check({"run": "a", "metric": "bleu", **bound}, rows)
    assert found is holds
    assert "bleu of a (3.0)" in claim


def _row(name, value):
    return {"name": name, "test": {"scores": {"bleu": {"value": value}}}}


def test_an_expectation_of_an_unknown_run_is_an_error():
    with pytest.raises(LookupError, match="'c'.*'bleu'"):
        check({"run": "c", "metric": "bleu", "at_least": 1}, [_row("a", 1.0)])


def test_components_are_documented():
    tables = (components, special, reply_tables, speed_tables, decoding_tables)
    assert all(component.__doc__ for one in tables for component in one.COMPONENTS)
