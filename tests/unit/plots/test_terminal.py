import io
import re

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

from regard.core.errors import DataError
from regard.plots.terminal import heatmap

IDENTITY = np.eye(3)
WORDS = ["a", "bb", "ccc"]


def test_plain_text_needs_no_colour():
    lines = heatmap(IDENTITY, WORDS, WORDS, width=80).plain.splitlines()
    assert lines[:6] == [
        "    ╭ a",
        "    │ ╭ bb",
        "    │ │ ╭ ccc",
        "  a ██    ",
        " bb   ██  ",
        "ccc     ██",
    ]


def test_shades_increase_with_the_weight():
    weights = [[0.01, 0.1, 0.3, 0.6, 1.0]]
    row = heatmap(weights, ["t"], list("abcde"), width=80).plain.splitlines()[5]
    assert row == "t   ░░▒▒▓▓██"


def test_legend_scales_with_the_largest_weight():
    assert heatmap([[0.4]], ["t"], ["s"], width=80).plain.rstrip().endswith("██ ≥ 0.30")


def test_values_are_hundredths():
    lines = heatmap([[0.07, 0.93]], ["t"], ["x", "y"], width=80, has_values=True).plain.splitlines()
    assert lines[2] == "t   7 93"


def test_wide_characters_keep_cells_aligned():
    lines = heatmap(IDENTITY, ["家", "b", "青い"], WORDS, width=80).plain.splitlines()[3:6]
    assert {cell_len(line) for line in lines} == {11}


def test_wide_heat_map_continues_below():
    lines = heatmap(np.ones((1, 30)), ["t"], ["word"] * 30, width=40).plain.splitlines()
    assert sum(line.startswith("t ") for line in lines) == 2


def test_no_line_is_wider_than_width():
    text = heatmap(np.ones((2, 30)), ["t", "uuu"], ["word"] * 30, width=60)
    assert max(map(cell_len, text.plain.splitlines())) <= 60


def test_default_width_is_that_of_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    weights, words = np.ones((1, 30)), ["word"] * 30
    assert heatmap(weights, ["t"], words).plain == heatmap(weights, ["t"], words, width=40).plain


def test_output_to_a_terminal_has_colours():
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, color_system="truecolor", width=80)
    console.print(heatmap(IDENTITY, WORDS, WORDS, width=80))
    # The codes are those of the console that printed the same style first: rich caches them.
    assert re.search(r"\x1b\[38;[25];[\d;]+m██", file.getvalue())


def test_output_to_a_file_has_no_colours():
    file = io.StringIO()
    Console(file=file, width=80).print(heatmap(IDENTITY, WORDS, WORDS, width=80))
    assert "\x1b" not in file.getvalue()


def test_control_codes_are_removed_from_words():
    assert "\x1b" not in heatmap([[1.0]], ["\x1b[2J"], ["\x1b]0;x\x07"], width=80).plain


def test_labels_of_another_length_are_refused():
    with pytest.raises(DataError, match="one row per target word"):
        heatmap(IDENTITY, WORDS[:2], WORDS)


def test_negative_weights_are_marked_without_colour():
    row = heatmap([[1.0, -1.0, -0.001]], ["t"], list("abc"), width=80).plain.splitlines()[3]
    assert row == "t ███-  "


def test_divider_is_a_line_between_columns():
    lines = heatmap(IDENTITY, WORDS, WORDS, width=80, divider=2).plain.splitlines()
    assert lines[:6] == [
        "    ╭ a",
        "    │ ╭ bb",
        "    │ │  ╭ ccc",
        "  a ██  ┊  ",
        " bb   ██┊  ",
        "ccc     ┊██",
    ]
