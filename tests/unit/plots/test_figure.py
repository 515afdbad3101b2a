import xml.etree.ElementTree as ElementTree

import matplotlib
import pytest

from regard.core.errors import ConfigError
from regard.plots.curves import bars
from regard.plots.figure import save, style, to_svg


def drawing():
    return to_svg(bars({"a": 1.0, "b <b>": 2.0}))


def test_svg_starts_at_its_own_tag():
    assert ElementTree.fromstring(drawing()).get("class") == "regard-figure"


def test_same_figure_is_the_same_text():
    assert drawing() == drawing()


def test_text_stays_text():
    texts = ElementTree.fromstring(drawing()).iter("{http://www.w3.org/2000/svg}text")
    assert "b <b>" in ["".join(text.itertext()) for text in texts]


def test_ink_follows_the_page():
    assert "currentColor" in drawing()


def test_names_do_not_clash_on_a_page():
    assert 'id="figure_1"' not in drawing()


def test_style_is_put_back():
    before = dict(matplotlib.rcParams)
    with style():
        pass
    assert dict(matplotlib.rcParams) == before


def test_png_is_an_image(tmp_path):
    save(tmp_path / "bars.png", bars({"a": 1.0}))
    assert (tmp_path / "bars.png").read_bytes().startswith(b"\x89PNG")


def test_svg_file_holds_the_drawing(tmp_path):
    save(tmp_path / "bars.svg", bars({"a": 1.0}))
    assert (tmp_path / "bars.svg").read_text() == to_svg(bars({"a": 1.0}))


def test_unknown_ending_names_both(tmp_path):
    with pytest.raises(ConfigError, match=r"must end in .png, .svg or .html, but is '.*bars.pdf'"):
        save(tmp_path / "bars.pdf", bars({"a": 1.0}))
