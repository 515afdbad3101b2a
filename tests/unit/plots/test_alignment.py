import pytest

from regard.core.errors import DataError
from regard.plots.alignment import AlignmentMap, alignment_maps
from regard.plots.figure import to_svg

MAP = AlignmentMap([[0.9, 0.1], [0.2, 0.8]], ["das", "Haus"], ["the", "house"], {(0, 0), (1, 1)})


def test_every_map_has_its_words_and_title():
    markup = to_svg(alignment_maps({"one": MAP, "two": MAP}))
    assert markup.count(">Haus<") == 2 and markup.count(">the<") == 2
    assert ">one<" in markup and ">two<" in markup


def test_gold_links_are_outlined():
    (axes,) = alignment_maps({"": MAP}).axes
    assert len(axes.patches) == 2


def test_weights_must_fit_the_words():
    with pytest.raises(DataError):
        alignment_maps({"": AlignmentMap([[1.0]], ["a", "b"], ["c"])})


def test_nothing_to_plot_is_refused():
    with pytest.raises(DataError, match="at least one map"):
        alignment_maps({})
