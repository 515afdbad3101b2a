import io

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

from regard.core.errors import DataError
from regard.plots.grid import Tile
from regard.plots.terminal import WIDTH, half_blocks, mosaic, shades

IMAGE = np.random.default_rng(0).integers(0, 256, (4, 6, 3), dtype=np.uint8)


def colours(line):
    """Return the foreground and background colour of each cell."""
    return [(span.style.color.triplet, span.style.bgcolor.triplet) for span in line.spans]


def test_cell_has_two_pixels():
    lines = half_blocks(IMAGE, width=6)
    assert [line.plain for line in lines] == ["▀" * 6] * 2
    for number, line in enumerate(lines):
        upper, lower = IMAGE[2 * number].tolist(), IMAGE[2 * number + 1].tolist()
        wanted = [(tuple(a), tuple(b)) for a, b in zip(upper, lower, strict=True)]
        assert [(tuple(a), tuple(b)) for a, b in colours(line)] == wanted


@pytest.mark.parametrize("shape", [(7, 5, 3), (1, 40, 3), (40, 1, 3), (300, 200, 3)])
def test_longest_side_has_width_cells(shape):
    lines = half_blocks(np.zeros(shape, np.uint8), width=20)
    height, width = shape[:2]
    assert len(lines[0]) == max(1, round(20 * width / max(shape)))
    assert abs(2 * len(lines) - max(2, 20 * height / max(shape))) <= 1


def test_shades_increase_with_brightness():
    image = np.array([[0, 60, 120, 180, 255]], np.uint8).repeat(2, axis=0)
    assert [line.plain for line in shades(image, width=5)] == [" ░▒▓█"]


def test_tiles_are_side_by_side_with_captions_below():
    tiles = [Tile(IMAGE, "a dog", "max 0.5"), Tile(IMAGE[:2], "犬", "", is_right=False)]
    lines = mosaic(tiles, width=2 * WIDTH + 2).plain.splitlines()
    assert lines[-2].split() == ["a", "dog", "✗", "犬"]
    assert cell_len(lines[-2].partition("✗")[0]) == WIDTH + 2
    assert lines[-1].startswith("max 0.5")
    assert lines[0] == "▀" * WIDTH + "  " + "▀" * WIDTH


def test_tiles_wrap_to_the_next_row():
    lines = mosaic([Tile(IMAGE, str(n)) for n in range(3)], width=2 * WIDTH + 2).plain.splitlines()
    assert [line.split() for line in lines if line.strip().isdigit() or "1" in line] == [
        ["0", "1"],
        ["2"],
    ]


@pytest.mark.parametrize("width", [12, 40, 100])
def test_no_line_is_wider_than_width(width):
    text = mosaic([Tile(IMAGE, "many words " * 9, "note " * 30)] * 4, width=width)
    assert max(map(cell_len, text.plain.splitlines())) <= width


def test_default_width_is_that_of_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    tiles = [Tile(IMAGE, "x")] * 5
    assert mosaic(tiles).plain == mosaic(tiles, width=70).plain


def test_output_to_a_terminal_has_colours():
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, color_system="truecolor", width=80)
    console.print(mosaic([Tile(np.full((2, 2, 3), 9, np.uint8))], width=80))
    assert "\x1b[38;2;9;9;9;48;2;9;9;9m▀" in file.getvalue()


def test_control_codes_are_removed_from_words():
    assert "\x1b" not in mosaic([Tile(IMAGE, "\x1b[2J", "\x1b]0;x\x07")], width=80).plain


def test_invalid_image_is_refused():
    with pytest.raises(DataError, match="`image` must hold bytes"):
        half_blocks(np.zeros((3, 3)))
