from dataclasses import replace

from regard.studies.compare import sections
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


def find_section(comparison, title):
    (section,) = [one for one in comparison_sections(comparison) if one.title == title]
    return section


def test_order_of_sections(german):
    assert [one.title for one in comparison_sections(german)] == TITLES


def test_every_row_has_a_value_for_each_column(german):
    for one in comparison_sections(german):
        assert {len(row) for row in one.rows} == {len(one.head)}, one.title


def test_data_without_tags_has_no_phenomena(german):
    bare = [replace(scored, by_tag=[], verbs=None) for scored in german.runs]
    titles = [one.title for one in comparison_sections(replace(german, runs=bare))]
    assert titles == TITLES[:4]


def test_targets_without_words_have_no_section_by_position(german):
    bare = [replace(scored, by_position=[]) for scored in german.runs]
    titles = [one.title for one in comparison_sections(replace(german, runs=bare))]
    assert "Accuracy by target position" not in titles


def test_quality_has_intervals_and_p_values(german):
    first, second = find_section(german, "Quality").rows
    assert first[:3] == ("right", "100.00 ± 0.00", "–")
    difference = german.runs[1].differences["bleu"]
    assert second[2] == f"{difference.value:+.2f} (p {difference.p_value:.3f})"
    assert (first[-1], second[-1]) == (100.0, 25.0)


def test_cost_has_decoder_and_parameters(german, tiny_run):
    row = find_section(german, "Cost").rows[0]
    assert row[:3] == ("right", "bahdanau", tiny_run.predictor.num_parameters)


def test_lengths_with_few_sentences_are_in_the_table_but_not_in_the_chart(german):
    lengths = find_section(german, "BLEU by source length")
    assert [row[:2] for row in lengths.rows] == [("≤ 5", 4)]
    assert not any(lengths.chart.series.values())


def test_positions_have_one_point_per_tenth(german):
    chart = find_section(german, "Accuracy by target position").chart
    assert list(chart.series) == ["right", "wrong"]
    assert [x for x, _ in chart.series["right"]] == list(range(5, 100, 10))


def test_phenomena_have_a_column_for_each_run(german):
    rows = find_section(german, "Exact matches by phenomenon, in percent").rows
    assert rows == [("question", 1, 100.0, 0.0), ("verb_last", 2, 100.0, 0.0)]


def test_verbs_have_a_row_for_each_run(german):
    rows = find_section(german, "Verbs at the end of dependent clauses").rows
    assert rows == [("right", 2, 2, 0, 0, 0.0), ("wrong", 2, 0, 1, 1, 50.0)]


def test_overview_has_a_column_for_each_run(german, tiny_run):
    section = overview(german)
    assert section.head == ("", "right", "wrong")
    rows = {name: values for name, *values in section.rows}
    assert rows["parameters"] == [tiny_run.predictor.num_parameters] * 2
    assert rows["BLEU"][0] == "100.00 ± 0.00"
    assert rows["alignment error rate"] == [tiny_run.evaluation.results["aer"].value] * 2


def test_overview_has_the_score_of_long_sentences(german, monkeypatch):
    monkeypatch.setattr(sections, "LONG", 4)
    (right, wrong) = next(values for name, *values in overview(german).rows if "4 words" in name)
    assert right > 99 > wrong


def test_overview_without_long_sentences_has_a_dash(german):
    rows = {name: values for name, *values in overview(german).rows}
    assert rows["BLEU above 20 words"] == ["–", "–"]
