import json

import pytest

from regard.data.example import Example
from regard.metrics.text.bleu import chrf
from regard.studies.compare.comparison import compare, find_disagreements


@pytest.fixture(scope="module")
def comparison(tiny_run, tiny_run_without_attention):
    """A model that has learned nothing, and one that has."""
    folders = [tiny_run_without_attention.folder, tiny_run.folder]
    return compare(folders, device="cpu", num_samples=100)


def test_scores_are_those_of_the_runs(comparison, tiny_run):
    for name in ("bleu", "chrf", "accuracy"):
        wanted = tiny_run.evaluation.results[name].value
        assert comparison.runs[1].results[name].value == wanted


def test_every_score_has_its_interval(comparison):
    for standing in comparison.runs:
        low, high = standing.results["bleu"].interval
        assert low <= standing.results["bleu"].value <= high


def test_first_run_is_held_against_nothing(comparison):
    assert comparison.runs[0].differences == {}


def test_better_run_is_better_and_not_by_chance(comparison):
    for name, found in comparison.runs[1].differences.items():
        before, after = (standing.results[name].value for standing in comparison.runs)
        assert found.value == pytest.approx(after - before)
        assert found.p_value < 0.05


def test_equal_runs_do_not_differ(tiny_run, copy_run):
    found = compare([tiny_run.folder, copy_run("same")], device="cpu", num_samples=40)
    differences = found.runs[1].differences.values()
    assert [(one.value, one.p_value) for one in differences] == [(0.0, 1.0)] * 2
    assert found.disagreements == []


def test_model_that_learned_foretells_more_at_every_place(comparison):
    worse, better = (standing.by_position for standing in comparison.runs)
    assert len(better) == 10
    for low, high in zip(worse, better, strict=True):
        assert low.results["accuracy"].value < high.results["accuracy"].value


@pytest.mark.parametrize(("target", "num_places"), [("b !", 10), ("! ?", 0)])
def test_punctuation_is_not_to_be_foretold(copy_run, target, num_places):
    folders = [copy_run(name, [Example("a b", target)], ["x"]) for name in "ab"]
    found = compare(folders, device="cpu", num_samples=40)
    assert len(found.runs[0].by_position) == num_places


def test_tags_are_measured(comparison):
    assert [group.name for group in comparison.runs[1].by_tag] == ["long", "short"]


def test_data_without_tags_has_no_groups_by_tag(german, copy_run):
    untagged = [one for one in german.runs[0].run.examples if not one.tags]
    folders = [copy_run(name, untagged, ["x"]) for name in "ab"]
    found = compare(folders, device="cpu", num_samples=40)
    assert [standing.by_tag for standing in found.runs] == [[], []]


def test_verbs_are_counted_where_they_come_last(german):
    right, wrong = (standing.verbs.detail for standing in german.runs)
    assert right == {"verbs": 2, "in_place": 2, "misplaced": 0, "missing": 0}
    assert wrong == {"verbs": 2, "in_place": 0, "misplaced": 1, "missing": 1}


def test_data_without_the_tag_has_no_verbs(comparison):
    assert [standing.verbs for standing in comparison.runs] == [None, None]


def test_plain_values_survive_json(german):
    values = german.to_dict()
    assert json.loads(json.dumps(values)) == values
    assert [run["name"] for run in values["runs"]] == ["right", "wrong"]
    assert set(values["disagreements"][0]["outputs"]) == {"right", "wrong"}


def test_plain_values_tell_how_they_came_about(comparison):
    values = comparison.to_dict()
    assert {"command", "commit", "hardware", "torch"} <= set(values)
    run = values["runs"][1]
    assert {"command", "parameters", "training", "folder", "decoder"} <= set(run)
    assert run["scores"]["bleu"]["signature"].startswith("nrefs:1|bs:100|seed:12345|")


EXAMPLES = [
    Example("1", "the cat sat"),
    Example("2", "the dog ran"),
    Example("3", "a house stands", references=("the house stands",)),
]


def test_greatest_distance_comes_first():
    first = ["the cat sat", "the dog ran", "a house stands"]
    second = ["the cat sits", "zzz", "a house is"]
    found = find_disagreements(EXAMPLES, [first, second])
    assert [one.source for one in found] == ["2", "3", "1"]
    assert found[0].spread == pytest.approx(100)


def test_equal_answers_are_never_shown():
    same = ["wrong", "the dog ran", "a"]
    assert find_disagreements(EXAMPLES, [same, same]) == []


def test_values_are_chrf_against_every_reference():
    answers = ["x", "y", "the house stands"]
    found = find_disagreements(EXAMPLES, [["x", "y", "a house"], answers])
    wanted = chrf(["a house"], [["a house stands", "the house stands"]]).value
    assert [one.values for one in found] == [pytest.approx((wanted, 100))]


def test_at_most_as_many_as_asked_for():
    assert len(find_disagreements(EXAMPLES, [["x"] * 3, ["y"] * 3], num=2)) == 2
