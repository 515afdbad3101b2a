import pytest

from regard.core.errors import ConfigError, DataError
from regard.metrics.grouping import by_length, by_position, by_tag
from regard.metrics.text.bleu import bleu, chrf

SOURCES = ["a b", "a b c d", "a b c d e f g", "a b c d"]
HYPOTHESES = ["u v w x", "p q r s", "k l m n", "p q r t"]
REFERENCES = [["u v w x"], ["p q r s"], ["a a a a"], ["p q r s"]]


def test_sentences_are_grouped_by_length():
    groups = by_length(SOURCES, HYPOTHESES, REFERENCES, edges=(2, 4, 6))
    assert [(group.name, group.count) for group in groups] == [("≤ 2", 1), ("3–4", 2), ("> 6", 1)]


def test_each_group_has_its_own_score():
    groups = by_length(SOURCES, HYPOTHESES, REFERENCES, edges=(2, 4, 6))
    wanted = bleu(["p q r s", "p q r t"], [["p q r s"], ["p q r s"]])
    assert groups[1].results["bleu"] == wanted


def test_without_edges_there_is_one_group():
    (group,) = by_length(SOURCES, HYPOTHESES, REFERENCES, edges=())
    assert (group.name, group.count) == ("all", 4)


def test_other_metrics_can_be_given():
    groups = by_length(SOURCES, HYPOTHESES, REFERENCES, metrics={"chrf": chrf})
    assert list(groups[0].results) == ["chrf"]


def test_edges_out_of_order_are_refused():
    with pytest.raises(ConfigError, match=r"`edges` must be .* ascending .* but is \(20, 10\)"):
        by_length(SOURCES, HYPOTHESES, REFERENCES, edges=(20, 10))


def test_sources_of_another_length_are_refused():
    with pytest.raises(DataError, match="`sources` and `hypotheses` .* there are 1 and 4"):
        by_length(["a"], HYPOTHESES, REFERENCES)


def test_a_sentence_counts_once_in_the_group_of_each_of_its_tags():
    tags = [["plural", "negation"], ["plural", "plural"], [], ["negation"]]
    groups = by_tag(tags, HYPOTHESES, REFERENCES)
    assert [(group.name, group.count) for group in groups] == [("negation", 2), ("plural", 2)]


def test_default_metrics_of_tags_are_bleu_and_accuracy():
    (group,) = by_tag([[], ["x"], ["x"], []], HYPOTHESES, REFERENCES)
    assert group.results["accuracy"].value == 50.0


def test_tags_of_another_length_are_refused():
    with pytest.raises(DataError, match="`tags` and `hypotheses` .* there are 1 and 4"):
        by_tag([["x"]], HYPOTHESES, REFERENCES)


def test_position_of_a_group_is_its_mean_length():
    groups = by_length(["a b c", *SOURCES[1:]], HYPOTHESES, REFERENCES, edges=(4, 6))
    assert [group.position for group in groups] == [pytest.approx(11 / 3), 7]


def test_accuracy_by_relative_position_in_the_target():
    groups = by_position([[True, True, False, False], [True, False]], num_parts=2)
    assert [group.results["accuracy"].value for group in groups] == [100, 0]
    assert [(group.name, group.position) for group in groups] == [("0–50 %", 25), ("50–100 %", 75)]


def test_word_in_two_parts_counts_fractionally_in_both():
    groups = by_position([[True, False, False]], num_parts=2)
    values = [group.results["accuracy"].value for group in groups]
    assert values == [pytest.approx(200 / 3), 0]


def test_short_targets_contribute_to_every_part():
    groups = by_position([[True], [False] * 3], num_parts=10)
    assert [group.results["accuracy"].value for group in groups] == [25.0] * 10
    assert {group.count for group in groups} == {2}


def test_empty_targets_are_ignored():
    (group,) = by_position([[], [True]], num_parts=1)
    assert (group.count, group.results["accuracy"].value) == (1, 100)


def test_targets_without_any_word_are_refused():
    with pytest.raises(DataError, match="`hits` must hold at least one target with a word"):
        by_position([[], []])


def test_num_parts_must_be_positive():
    with pytest.raises(ConfigError, match="`num_parts` must be at least 1, but is 0"):
        by_position([[True]], num_parts=0)


def test_lengths_can_count_characters():
    groups = by_length(
        ["猫", "猫が好き", "ab  c", "a"], HYPOTHESES, REFERENCES, unit="character", edges=(1, 3)
    )
    assert [(group.name, group.count, group.position) for group in groups] == [
        ("≤ 1", 2, 1),
        ("> 3", 2, 4),
    ]


def test_length_of_several_texts_is_their_sum():
    pairs = [tuple(source.split(" ", 1)) for source in SOURCES]
    assert by_length(pairs, HYPOTHESES, REFERENCES, edges=(2, 4)) == by_length(
        SOURCES, HYPOTHESES, REFERENCES, edges=(2, 4)
    )


def test_unknown_unit_of_length_is_refused():
    with pytest.raises(ConfigError, match="`unit` must be one of 'word', 'character', but is 'w'"):
        by_length(SOURCES, HYPOTHESES, REFERENCES, unit="w")
