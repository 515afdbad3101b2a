import pytest

from regard.core.errors import DataError
from regard.plots.figure import to_svg
from regard.plots.tree import STYLES, Branch, trees

LEAVES = (Branch("cat", 0.9, 0.36, "result"), Branch("dog", 0.1, 0.04, "pruned"))
TREE = (Branch("the", 0.6, 0.6), Branch("a", 0.4, 0.4, "result", LEAVES))


def test_every_branch_is_a_line_in_the_colour_of_its_status():
    (axes,) = trees({"beam 2": TREE}).axes
    colors = [line.get_color() for line in axes.lines]
    expected = ["result", "pruned", "kept", "result"]
    assert sorted(colors) == sorted(STYLES[status][0] for status in expected)


def test_words_totals_and_probabilities_are_shown():
    (axes,) = trees({"beam 2": TREE}).axes
    texts = {text.get_text() for text in axes.texts}
    assert {"<sos>", "the\n0.6", "cat\n0.36", "0.9", "0.4"} <= texts


def test_leaves_do_not_overlap():
    (axes,) = trees({"beam 2": TREE}).axes
    rows = {text.get_text(): text.get_position()[1] for text in axes.texts}
    assert rows["the\n0.6"] < rows["cat\n0.36"] < rows["dog\n0.04"]


def test_tree_is_rendered():
    assert "<svg" in to_svg(trees({"greedy": TREE, "beam 2": TREE}))


def test_empty_tree_is_an_error():
    with pytest.raises(DataError, match="at least one branch"):
        trees({"empty": ()})
