import json

import pytest

from regard.data.example import Example
from regard.metrics.text.bleu import chrf
from regard.studies.compare.comparison import compare, find_disagreements


@pytest.fixture(scope="module")
def comparison(tiny_run, tiny_run_without_attention):
    """Comparison of an untrained and a trained model."""
    folders = [tiny_run_without_attention.folder, tiny_run.folder]
    return compare(folders, device="cpu", num_samples=100)


def test_scores_equal_those_of_the_runs(comparison, tiny_run):
    for name in ("bleu", "chrf", "accuracy"):
        expected = tiny_run.evaluation.results[name].value
        assert comparison.runs[1].results[name].value == expected


def test_every_score_has_an_interval(comparison):
    for scored in comparison.runs:
        low, high = scored.results["bleu"].interval
        assert low <= scored.results["bleu"].value <= high


def test_first_run_has_no_differences(comparison):
    assert comparison.runs[0].differences == {}


def test_better_run_is_significantly_better(comparison):
    for name, difference in comparison.runs[1].differences.items():
        before, after = (scored.results[name].value for scored in comparison.runs)
        assert difference.value == pytest.approx(after - before)
        assert difference.p_value < 0.05


def test_equal_runs_do_not_differ(tiny_run, copy_run):
    result = compare([tiny_run.folder, copy_run("same")], device="cpu", num_samples=40)
    differences = result.runs[1].differences.values()
    assert [(one.value, one.p_value) for one in differences] == [(0.0, 1.0)] * 2
    assert result.disagreements == []


def test_trained_model_predicts_more_words_at_every_position(comparison):
    worse, better = (scored.by_position for scored in comparison.runs)
    assert len(better) == 10
    for low, high in zip(worse, better, strict=True):
        assert low.results["accuracy"].value < high.results["accuracy"].value


@pytest.mark.parametrize(("target", "num_groups"), [("b !", 10), ("! ?", 0)])
def test_punctuation_is_not_counted_by_position(copy_run, target, num_groups):
    folders = [copy_run(name, [Example("a b", target)], ["x"]) for name in "ab"]
    result = compare(folders, device="cpu", num_samples=40)
    assert len(result.runs[0].by_position) == num_groups


def test_scores_are_grouped_by_tag(comparison):
    assert [group.name for group in comparison.runs[1].by_tag] == ["long", "short"]


def test_data_without_tags_has_no_groups_by_tag(german, copy_run):
    untagged = [one for one in german.runs[0].run.examples if not one.tags]
    folders = [copy_run(name, untagged, ["x"]) for name in "ab"]
    result = compare(folders, device="cpu", num_samples=40)
    assert [scored.by_tag for scored in result.runs] == [[], []]


def test_verbs_of_dependent_clauses_are_counted(german):
    right, wrong = (scored.verbs.detail for scored in german.runs)
    assert right == {"verbs": 2, "in_place": 2, "misplaced": 0, "missing": 0}
    assert wrong == {"verbs": 2, "in_place": 0, "misplaced": 1, "missing": 1}


def test_data_without_the_tag_has_no_verb_counts(comparison):
    assert [scored.verbs for scored in comparison.runs] == [None, None]


def test_dictionary_can_be_written_as_json(german):
    values = german.to_dict()
    assert json.loads(json.dumps(values)) == values
    assert [run["name"] for run in values["runs"]] == ["right", "wrong"]
    assert set(values["disagreements"][0]["outputs"]) == {"right", "wrong"}


def test_dictionary_holds_the_provenance(comparison):
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


def test_largest_spread_comes_first():
    first = ["the cat sat", "the dog ran", "a house stands"]
    second = ["the cat sits", "zzz", "a house is"]
    result = find_disagreements(EXAMPLES, [first, second])
    assert [one.source for one in result] == ["2", "3", "1"]
    assert result[0].spread == pytest.approx(100)


def test_equal_outputs_are_no_disagreement():
    same = ["wrong", "the dog ran", "a"]
    assert find_disagreements(EXAMPLES, [same, same]) == []


def test_chrf_uses_every_reference():
    outputs = ["x", "y", "the house stands"]
    result = find_disagreements(EXAMPLES, [["x", "y", "a house"], outputs])
    expected = chrf(["a house"], [["a house stands", "the house stands"]]).value
    assert [one.values for one in result] == [pytest.approx((expected, 100))]


def test_number_of_disagreements_is_limited():
    assert len(find_disagreements(EXAMPLES, [["x"] * 3, ["y"] * 3], num=2)) == 2
