import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from regard.core.errors import ConfigError, DataError
from regard.plots.heatmap import save, svg

SPACE = "{http://www.w3.org/2000/svg}"
WEIGHTS = [[0.9, 0.1], [0.2, 0.8], [0.0, 0.93]]
ROWS = ["das", "Haus", "ist"]
COLUMNS = ["the", "house"]


def elements(markup, tag):
    return list(ElementTree.fromstring(markup).iter(SPACE + tag))


def width(markup):
    return int(ElementTree.fromstring(markup).get("width"))


def test_every_cell_has_its_words_and_weight():
    titles = [title.text for title in elements(svg(WEIGHTS, ROWS, COLUMNS), "title")]
    assert titles[-1] == "\u2068ist\u2069 ← \u2068house\u2069: 0.93"


def test_there_is_one_cell_per_weight():
    assert len(elements(svg(WEIGHTS, ROWS, COLUMNS), "title")) == 6


def test_largest_weight_is_opaque():
    cells = [
        r
        for r in elements(svg(WEIGHTS, ROWS, COLUMNS), "rect")
        if r.find(SPACE + "title") is not None
    ]
    assert cells[5].get("fill-opacity") == "1"


def test_labels_are_text_elements():
    texts = [text.text for text in elements(svg(WEIGHTS, ROWS, COLUMNS), "text")]
    assert set(ROWS + COLUMNS) <= set(texts)


def test_text_is_escaped():
    markup = svg([[1.0]], ["<script>alert(1)</script>"], ["\x00&"], title="<b>")
    assert not elements(markup, "script")


def test_scripts_of_all_directions_are_valid_xml():
    markup = svg([[1.0, 0.0]], ["البيت"], ["青い", "▁家"])
    assert "البيت" in [text.text for text in elements(markup, "text")]


def test_long_words_are_truncated_with_the_full_text_on_hover():
    word = "Donaudampfschifffahrtsgesellschaftskapitän"
    markup = svg([[1.0]], [word], ["x"])
    texts = [text.text for text in elements(markup, "text")]
    assert word not in texts and word in elements(markup, "title")[0].text


def test_long_title_widens_the_plot():
    assert width(svg([[1.0]], ["a"], ["x"], title="t" * 80)) > width(svg([[1.0]], ["a"], ["x"]))


def test_values_are_shown_on_request():
    texts = [text.text for text in elements(svg(WEIGHTS, ROWS, COLUMNS, has_values=True), "text")]
    assert ".93" in texts


def test_values_on_dark_cells_are_light():
    markup = svg([[0.9, 0.1]], ["a"], ["x", "y"], has_values=True)
    classes = {text.text: text.get("class") for text in elements(markup, "text")}
    assert (classes[".90"], classes[".10"]) == ("value over", "value")


def test_legend_ends_at_the_largest_weight():
    markup = svg([[0.25, 0.1]], ["a"], ["x", "y"])
    assert elements(markup, "text")[-1].text == "0.25"


def test_svg_has_no_external_links():
    markup = svg(WEIGHTS, ROWS, COLUMNS).replace("http://www.w3.org/2000/svg", "")
    assert "http" not in markup and "url(" not in markup


def test_labels_of_another_length_are_refused():
    with pytest.raises(DataError, match="one row per target word"):
        svg(WEIGHTS, ROWS[:2], COLUMNS)


def test_svg_file_contains_the_plot(tmp_path):
    save(tmp_path / "map.svg", WEIGHTS, rows=ROWS, columns=COLUMNS, title="t")
    assert (tmp_path / "map.svg").read_text() == svg(WEIGHTS, ROWS, COLUMNS, title="t")


def test_html_file_contains_the_plot(tmp_path):
    save(tmp_path / "map.html", WEIGHTS, rows=ROWS, columns=COLUMNS, title="t")
    page = (tmp_path / "map.html").read_text()
    assert page.startswith("<!DOCTYPE html>") and svg(WEIGHTS, ROWS, COLUMNS, title="t") in page


def test_png_file_is_saved_without_warnings_for_missing_glyphs(tmp_path):
    words = ["青い", "البيت", "\U00013000", "$x"]
    save(tmp_path / "map.png", np.eye(4), rows=words, columns=words, title="$a$ 家")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


def test_a_suffix_in_upper_case_has_the_same_format(tmp_path):
    for suffix in (".svg", ".html", ".png"):
        for path in (tmp_path / f"a{suffix}", tmp_path / f"b{suffix.upper()}"):
            save(path, WEIGHTS, rows=ROWS, columns=COLUMNS)
        assert (tmp_path / f"a{suffix}").read_bytes() == path.read_bytes()


def test_png_with_labels_of_another_length_is_refused(tmp_path):
    with pytest.raises(DataError, match="one row per target word"):
        save(tmp_path / "map.png", WEIGHTS, rows=ROWS[:2], columns=COLUMNS)


def test_unknown_suffix_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"must end in .png, .svg, .pdf or .html, .*map.bmp'"):
        save(tmp_path / "map.bmp", WEIGHTS, rows=ROWS, columns=COLUMNS)


def test_negative_weights_have_a_colour_of_their_own():
    markup = svg([[-0.5, 0.25]], ["a"], ["b", "c"])
    cells = [rect for rect in elements(markup, "rect") if rect.find(SPACE + "title") is not None]
    assert [cell.get("class") for cell in cells] == ["cell negative", "cell"]
    assert [cell.get("fill-opacity") for cell in cells] == ["1", "0.5"]
    assert "−0.50" in [text.text for text in elements(markup, "text")]


def test_divider_is_a_line_after_a_number_of_columns():
    markup = svg([[0.1, 0.2, 0.3]], ["a"], ["b", "c", "d"], divider=2)
    (line,) = elements(markup, "line")
    cells = [rect for rect in elements(markup, "rect") if rect.find(SPACE + "title") is not None]
    assert line.get("x1") == line.get("x2") == cells[2].get("x")


def test_large_maps_leave_out_faint_cells(monkeypatch):
    monkeypatch.setattr("regard.plots.heatmap.MAX_CELLS", 2)
    assert len(elements(svg([[1.0, 0.5, 0.001]], ["a"], ["b", "c", "d"]), "title")) == 2


def test_characters_without_a_font_are_reported(tmp_path, caplog):
    save(tmp_path / "map.png", [[1.0]], ["\U0001f9ff\ua840"], columns=["a"])
    assert "no font installed here has" in caplog.text and ".svg or .html" in caplog.text
