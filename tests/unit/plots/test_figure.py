import logging
import xml.etree.ElementTree as ElementTree

import matplotlib
import pytest

from regard.core.errors import ConfigError
from regard.plots.curves import bars
from regard.plots.figure import save, style, to_svg


def render():
    return to_svg(bars({"a": 1.0, "b <b>": 2.0}))


def test_svg_starts_with_its_tag():
    assert ElementTree.fromstring(render()).get("class") == "regard-figure"


def test_svg_is_deterministic():
    assert render() == render()


def test_text_is_not_converted_to_paths():
    texts = ElementTree.fromstring(render()).iter("{http://www.w3.org/2000/svg}text")
    assert "b <b>" in ["".join(text.itertext()) for text in texts]


def test_text_colour_follows_the_page():
    assert "currentColor" in render()


def test_numbered_ids_are_removed():
    assert 'id="figure_1"' not in render()


def test_style_is_restored():
    before = dict(matplotlib.rcParams)
    with style():
        pass
    assert dict(matplotlib.rcParams) == before


def test_fonts_without_a_bold_weight_cause_no_message(tmp_path, caplog):
    from matplotlib.figure import Figure

    with style():
        canvas = Figure(figsize=(2, 1))
        canvas.text(0.5, 0.5, "赤い ✓ ⏣ 🇪", weight="bold")
    save(tmp_path / "bold.png", canvas)
    assert not [one for one in caplog.records if one.name.startswith("matplotlib")]


def test_png_is_an_image(tmp_path):
    save(tmp_path / "bars.png", bars({"a": 1.0}))
    assert (tmp_path / "bars.png").read_bytes().startswith(b"\x89PNG")


def test_svg_file_contains_the_plot(tmp_path):
    save(tmp_path / "bars.svg", bars({"a": 1.0}))
    assert (tmp_path / "bars.svg").read_text() == to_svg(bars({"a": 1.0}))


def test_unknown_suffix_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"must end in .png, .svg, .pdf or .html, .*bars.bmp'"):
        save(tmp_path / "bars.bmp", bars({"a": 1.0}))


def test_missing_bold_font_is_no_message(caplog):
    with style():
        logger = logging.getLogger("matplotlib.font_manager")
        logger.warning("findfont: Failed to find font weight bold for %s, now using 400.", "One")
        logger.warning("findfont: Font family %s not found.", "Other")
    assert [record.getMessage() for record in caplog.records] == [
        "findfont: Font family Other not found."
    ]
