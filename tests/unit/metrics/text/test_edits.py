import random

import pytest

from regard.core.errors import ConfigError, DataError
from regard.metrics.text.error_rates import Edit, align, by_unit, cer, edit_distance, edits, per


@pytest.fixture(scope="module")
def pronunciations():
    """Return hypotheses with errors and one to three references each."""
    generator = random.Random(6)
    phones = ["AA", "B", "K", "S", "T", "IH"]

    def spoken():
        return " ".join(generator.choices(phones, k=generator.randint(1, 7)))

    return [spoken() for _ in range(150)], [
        [spoken() for _ in range(generator.randint(1, 3))] for _ in range(150)
    ]


def test_edits_are_counted_by_kind():
    found = edits(["K AE T", "K AA T S", "K AA"], [["K AA T"]] * 3, unit="word")
    assert found == [Edit("", "S", 1), Edit("AA", "AE", 1), Edit("T", "", 1)]


def test_most_frequent_edit_comes_first():
    found = edits(["cat", "cut", "bit"], [["cot"], ["cot"], ["bet"]], unit="character")
    assert found == [Edit("e", "i", 1), Edit("o", "a", 1), Edit("o", "u", 1)]
    found = edits(["cut", "cut", "bit"], [["cot"], ["cot"], ["bet"]], unit="character")
    assert found[0] == Edit("o", "u", 2)


def test_exact_matches_have_no_edits():
    assert edits(["a b"], [["c d", "a b"]], unit="word") == []


@pytest.mark.parametrize(("unit", "measure"), [("word", per), ("character", cer)])
def test_counts_sum_to_the_edits_of_the_error_rate(unit, measure, pronunciations):
    found = edits(*pronunciations, unit=unit)
    detail = measure(*pronunciations).detail
    assert sum(edit.count for edit in found) == detail["edits"]
    groups = by_unit(*pronunciations, unit=unit)
    assert sum(group.count for group in groups) == detail["length"]
    num_inserted = sum(edit.count for edit in found if not edit.right)
    wrong = sum(group.results["errors"].detail["wrong"] for group in groups)
    assert wrong == detail["edits"] - num_inserted


def test_alignment_has_the_fewest_edits():
    generator = random.Random(7)
    for _ in range(300):
        right, written = (generator.choices("abc", k=generator.randint(0, 8)) for _ in range(2))
        pairs = align(right, written)
        assert [unit for unit, _ in pairs if unit] == right
        assert [unit for _, unit in pairs if unit] == written
        assert sum(unit != other for unit, other in pairs) == edit_distance(right, written)


def test_ties_between_alignments_are_broken_consistently():
    assert align(list("aab"), list("ab")) == [("a", ""), ("a", "a"), ("b", "b")]


def test_units_with_most_errors_come_first():
    groups = by_unit(["b b a", "c"], [["a a a"], ["d"]], unit="word")
    assert [(group.name, group.count) for group in groups] == [("a", 3), ("d", 1)]
    assert groups[0].results["errors"].value == pytest.approx(200 / 3)
    assert groups[1].results["errors"].value == 100


def test_ties_between_units_are_broken_by_rarity_and_alphabet():
    groups = by_unit(["x a x x"], [["a a c b"]], unit="word")
    assert [group.name for group in groups] == ["b", "c", "a"]


def test_insertions_belong_to_no_unit():
    (group,) = by_unit(["a b"], [["a"]], unit="word")
    assert (group.name, group.results["errors"].value) == ("a", 0)


def test_unknown_unit_is_refused():
    with pytest.raises(ConfigError, match="`unit` must be one of 'word', 'character', but is 'le"):
        edits(["a"], [["a"]], unit="letter")


def test_lists_of_unequal_length_are_refused():
    with pytest.raises(DataError, match="equal length, but there are 1 and 2"):
        by_unit(["a"], [["a"], ["b"]], unit="word")
