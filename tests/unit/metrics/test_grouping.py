import pytest

from regard.core.errors import ConfigError, DataError
from regard.metrics.grouping import by_length, by_tag
from regard.metrics.text import bleu, chrf

SOURCES = ["a b", "a b c d", "a b c d e f g", "a b c d"]
HYPOTHESES = ["u v w x", "p q r s", "k l m n", "p q r t"]
REFERENCES = [["u v w x"], ["p q r s"], ["a a a a"], ["p q r s"]]


def test_lengths_fall_into_named_groups():
    groups = by_length(SOURCES, HYPOTHESES, REFERENCES, edges=(2, 4, 6))
    assert [(group.name, group.count) for group in groups] == [("≤ 2", 1), ("3–4", 2), ("> 6", 1)]


def test_a_group_is_measured_by_itself():
    groups = by_length(SOURCES, HYPOTHESES, REFERENCES, edges=(2, 4, 6))
    wanted = bleu(["p q r s", "p q r t"], [["p q r s"], ["p q r s"]])
    assert groups[1].results["bleu"] == wanted


def test_without_edges_there_is_one_group():
    (group,) = by_length(SOURCES, HYPOTHESES, REFERENCES, edges=())
    assert (group.name, group.count) == ("all", 4)


def test_other_measures_can_be_asked_for():
    groups = by_length(SOURCES, HYPOTHESES, REFERENCES, measures={"chrf": chrf})
    assert list(groups[0].results) == ["chrf"]


def test_edges_out_of_order_are_refused():
    with pytest.raises(ConfigError, match=r"`edges` must ascend, but is \(20, 10\)"):
        by_length(SOURCES, HYPOTHESES, REFERENCES, edges=(20, 10))


def test_sources_of_another_length_are_refused():
    with pytest.raises(DataError, match="`sources` and `hypotheses` .* there are 1 and 4"):
        by_length(["a"], HYPOTHESES, REFERENCES)


def test_a_sentence_counts_once_in_the_group_of_each_of_its_tags():
    tags = [["plural", "negation"], ["plural", "plural"], [], ["negation"]]
    groups = by_tag(tags, HYPOTHESES, REFERENCES)
    assert [(group.name, group.count) for group in groups] == [("negation", 2), ("plural", 2)]


def test_tags_are_measured_by_bleu_and_accuracy():
    (group,) = by_tag([[], ["x"], ["x"], []], HYPOTHESES, REFERENCES)
    assert group.results["accuracy"].value == 50.0


def test_tags_of_another_length_are_refused():
    with pytest.raises(DataError, match="`tags` and `hypotheses` .* there are 1 and 4"):
        by_tag([["x"]], HYPOTHESES, REFERENCES)
