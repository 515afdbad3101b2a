import numpy as np
import pytest

from regard.core.errors import DataError
from regard.plots.word_maps import WordMap, word_maps

WORDS = ["the", "cat", "sat"]


def test_each_map_has_a_panel_with_its_words():
    figure = word_maps({f"head {n}": WordMap(np.eye(3), WORDS, WORDS) for n in range(3)}, columns=2)
    shown = [axes for axes in figure.axes if axes.images]
    assert [axes.get_title(loc="left") for axes in shown] == ["head 0", "head 1", "head 2"]
    assert [tick.get_text() for tick in shown[0].get_yticklabels()] == WORDS


def test_cells_show_values_and_minus_infinity():
    weights = np.array([[0.25, -np.inf]])
    axes = word_maps({"mask": WordMap(weights, ["a"], ["b", "c"])}, has_values=True).axes[0]
    assert [text.get_text() for text in axes.texts] == [".25", "−∞"]


def test_map_needs_one_row_per_word():
    with pytest.raises(DataError, match="shape"):
        word_maps({"map": WordMap(np.eye(2), WORDS, WORDS)})


def test_figure_needs_a_map():
    with pytest.raises(DataError, match="at least one map"):
        word_maps({})


def test_many_long_maps_fit_on_a_sheet_of_limited_size():
    words = [f"word {number}" for number in range(120)]
    panels = {f"head {n}": WordMap(np.eye(120), words, words) for n in range(12)}
    figure = word_maps(panels, columns=4)
    assert max(figure.get_size_inches()) <= 81
    assert 3 < figure.axes[0].get_yticklabels()[0].get_fontsize() < 10
