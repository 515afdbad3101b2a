import pytest

from regard.core.errors import DataError
from regard.plots.words import by_word, distributions, links, token_rows


def test_one_line_per_link():
    (axes,) = links(["I", "see"], ["ich", "sehe"], [(0, 0), (1, 1)]).axes
    assert len(axes.lines) == 2
    assert [text.get_text() for text in axes.texts] == ["I", "see", "ich", "sehe"]


def test_shorter_sentence_is_centred():
    (axes,) = links(["a", "b", "c"], ["x"], []).axes
    positions = {text.get_text(): text.get_position()[0] for text in axes.texts}
    assert positions["x"] == positions["b"]


def test_empty_sentence_is_an_error():
    with pytest.raises(DataError, match="one is empty"):
        links([], ["x"], [])


def test_tokens_of_groups_are_coloured():
    figure = token_rows([["<sos>", "a"], ["<sos>", "<pad>"]], {"padding": ["<pad>"]})
    (axes,) = figure.axes
    filled = [patch for patch in axes.patches if patch.get_fill() and patch.get_facecolor()[3]]
    assert len(filled) == 1
    assert [text.get_text() for text in axes.texts] == ["<sos>", "a", "<sos>", "<pad>"]


def test_rows_of_different_lengths_are_an_error():
    with pytest.raises(DataError, match=r"\[1, 2\]"):
        token_rows([["a"], ["a", "b"]], {})


def test_values_by_word_are_on_a_logarithmic_axis():
    (axes,) = by_word(["a", "b"], {"one": [0.1, 0.2], "two": [0.3, 0.4]}, y_label="p").axes
    assert axes.get_yscale() == "log" and len(axes.lines) == 2
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["a", "b"]


def test_value_of_zero_by_word_is_an_error():
    with pytest.raises(DataError, match="'one' must have a value above 0"):
        by_word(["a", "b"], {"one": [0.1, 0.0]}, y_label="p")


def test_marked_word_has_another_colour():
    figure = distributions({"I saw a _": {"cat": 0.7, "dog": 0.3}}, marked=["cat"])
    first, second = figure.axes[0].patches
    assert first.get_facecolor() != second.get_facecolor()
    assert first.get_width() == 0.7


def test_every_panel_needs_a_marked_word():
    with pytest.raises(DataError, match="0 words and 1 panels"):
        distributions({"a": {"b": 1.0}}, marked=[])
