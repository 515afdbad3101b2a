from dataclasses import replace

from regard.studies.compare import sections as parts
from regard.studies.compare.sections import comparison_sections, overview

TITLES = [
    "Quality",
    "Cost",
    "BLEU by source length",
    "Accuracy by target position",
    "BLEU by phenomenon",
    "Exact matches by phenomenon, in percent",
    "Verbs at the end of dependent clauses",
]


def part(comparison, title):
    (found,) = [one for one in comparison_sections(comparison) if one.title == title]
    return found


def test_parts_come_in_order(german):
    assert [one.title for one in comparison_sections(german)] == TITLES


def test_every_row_fits_its_head(german):
    for one in comparison_sections(german):
        assert {len(row) for row in one.rows} == {len(one.head)}, one.title


def test_data_without_tags_has_no_phenomena(german):
    bare = [replace(standing, by_tag=[], verbs=None) for standing in german.runs]
    titles = [one.title for one in comparison_sections(replace(german, runs=bare))]
    assert titles == TITLES[:4]


def test_targets_without_words_have_no_places(german):
    bare = [replace(standing, by_position=[]) for standing in german.runs]
    titles = [one.title for one in comparison_sections(replace(german, runs=bare))]
    assert "Accuracy by target position" not in titles


def test_quality_holds_scores_with_their_spread_and_differences_with_their_p_value(german):
    first, second = part(german, "Quality").rows
    assert first[:3] == ("right", "100.00 ± 0.00", "–")
    found = german.runs[1].differences["bleu"]
    assert second[2] == f"{found.value:+.2f} (p {found.p_value:.3f})"
    assert (first[-1], second[-1]) == (100.0, 25.0)


def test_cost_holds_what_training_left(german, tiny_run):
    row = part(german, "Cost").rows[0]
    assert row[:3] == ("right", "bahdanau", tiny_run.predictor.num_parameters)


def test_lengths_with_few_sentences_are_in_the_table_but_not_in_the_curve(german):
    lengths = part(german, "BLEU by source length")
    assert [row[:2] for row in lengths.rows] == [("≤ 5", 4)]
    assert not any(lengths.chart.series.values())


def test_places_have_one_point_a_tenth(german):
    chart = part(german, "Accuracy by target position").chart
    assert list(chart.series) == ["right", "wrong"]
    assert [x for x, _ in chart.series["right"]] == list(range(5, 100, 10))


def test_phenomena_have_a_column_for_each_run(german):
    rows = part(german, "Exact matches by phenomenon, in percent").rows
    assert rows == [("question", 1, 100.0, 0.0), ("verb_last", 2, 100.0, 0.0)]


def test_verbs_have_a_row_for_each_run(german):
    rows = part(german, "Verbs at the end of dependent clauses").rows
    assert rows == [("right", 2, 2, 0, 0, 0.0), ("wrong", 2, 0, 1, 1, 50.0)]


def test_glance_has_a_column_for_each_run(german, tiny_run):
    found = overview(german)
    assert found.head == ("", "right", "wrong")
    rows = {name: values for name, *values in found.rows}
    assert rows["parameters"] == [tiny_run.predictor.num_parameters] * 2
    assert rows["BLEU"][0] == "100.00 ± 0.00"
    assert rows["alignment error rate"] == [tiny_run.evaluation.results["aer"].value] * 2


def test_glance_measures_long_sentences_apart(german, monkeypatch):
    monkeypatch.setattr(parts, "LONG", 4)
    (right, wrong) = next(values for name, *values in overview(german).rows if "4 words" in name)
    assert right > 99 > wrong


def test_glance_without_long_sentences_leaves_their_place_empty(german):
    rows = {name: values for name, *values in overview(german).rows}
    assert rows["BLEU above 20 words"] == ["–", "–"]
