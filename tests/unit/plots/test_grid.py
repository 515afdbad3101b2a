import base64
import io
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle
from PIL import Image

from regard.core.errors import ConfigError, DataError
from regard.plots.figure import save, to_svg
from regard.plots.grid import COLUMNS, RIGHT, WRONG, Box, Tile, contact_sheet, sheet

SPACE = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"
IMAGES = [
    np.random.default_rng(seed).integers(0, 256, (40, 60, 3), dtype=np.uint8) for seed in range(7)
]
TILES = [Tile(image, f"word {number}") for number, image in enumerate(IMAGES)]


def elements(figure, tag):
    return list(ElementTree.fromstring(to_svg(figure)).iter(SPACE + tag))


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def extents(figure):
    return [image.get_extent() for image in figure.axes[0].images]


def frames(figure):
    found = [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]
    return [(to_hex(patch.get_edgecolor()), patch.get_bbox().bounds) for patch in found]


def test_svg_contains_the_original_pixels():
    written = [image.get(LINK) for image in elements(sheet(TILES[:2]), "image")]
    for address, tile in zip(written, TILES, strict=False):
        kind, _, data = address.partition(",")
        assert kind == "data:image/png;base64"
        found = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB"))
        # matplotlib flips images in SVG vertically.
        assert (found == tile.image).all() or (found[::-1] == tile.image).all()


def test_captions_are_below_their_image():
    figure = sheet([Tile(IMAGES[0], "a dog", "max 0.5")])
    (left, _, bottom, _), (caption, note) = extents(figure)[0], figure.axes[0].texts
    assert texts(figure) == ["a dog", "max 0.5"]
    assert caption.get_position()[0] == left
    assert bottom < caption.get_position()[1] < note.get_position()[1]


def test_rows_wrap_after_columns():
    positions = [(left, top) for left, _, _, top in extents(sheet(TILES, columns=3))]
    assert len({top for _, top in positions}) == 3
    assert [left for left, _ in positions[:3]] == [left for left, _ in positions[3:6]]
    assert positions[0][0] < positions[1][0] < positions[2][0]
    assert positions[0][1] < positions[3][1] < positions[6][1]


@pytest.mark.parametrize("columns", [3, 7])
def test_images_and_texts_do_not_overlap(columns):
    tiles = [
        Tile(image[:, : 20 + 5 * number], "many words " * number, "and a note")
        for number, image in enumerate(IMAGES)
    ]
    figure = sheet(tiles, columns=columns, title="A title")
    figure.draw_without_rendering()
    artists = [*figure.axes[0].images, *figure.axes[0].texts]
    boxes = [artist.get_window_extent() for artist in artists]
    for number, box in enumerate(boxes):
        for other in boxes[number + 1 :]:
            width = min(box.x1, other.x1) - max(box.x0, other.x0)
            height = min(box.y1, other.y1) - max(box.y0, other.y0)
            # Lines of text have a margin, so an overlap of a few pixels is allowed.
            assert width <= 0 or height <= 4


def test_many_columns_are_as_wide_as_a_page():
    page, full, few = (
        sheet(TILES, columns=columns).get_figwidth() for columns in (COLUMNS, len(TILES), 2)
    )
    assert few < 0.95 * full < full <= page


def test_images_keep_their_aspect_ratio():
    for left, right, bottom, top in extents(sheet(TILES)):
        assert (right - left) / (bottom - top) == pytest.approx(60 / 40, rel=0.02)


def test_long_captions_are_wrapped_and_truncated():
    found = texts(sheet([Tile(IMAGES[0], "dog " * 60)]))
    assert len(found) == 4
    assert max(map(len, found)) < 30
    assert found[-1].endswith("…")


def test_wide_characters_are_wrapped_earlier():
    wide, narrow = (texts(sheet([Tile(IMAGES[0], letter * 40)])) for letter in "犬x")
    assert len(wide) == 2 * len(narrow)


def test_correct_and_wrong_predictions_differ_in_frame_and_mark():
    figure = sheet(contact_sheet(IMAGES[:2], ["dog", "cat"], ["dog", "fox"]))
    assert texts(figure) == ["✓ dog", "✗ cat", "right: fox"]
    assert [colour for colour, _ in frames(figure)] == [RIGHT, WRONG]


def test_labels_of_another_length_are_refused():
    with pytest.raises(DataError, match="there are 2 images, 1 predictions and 2 labels"):
        contact_sheet(IMAGES[:2], ["dog"], ["dog", "cat"])


def test_boxes_are_at_their_coordinates():
    figure = sheet([Tile(IMAGES[0], boxes=(Box(0.25, 0.5, 0.75, 1.0, "dog"),))])
    left, right, bottom, top = extents(figure)[0]
    width, height = right - left, bottom - top
    wanted = (left + 0.25 * width, top + 0.5 * height, 0.5 * width, 0.5 * height)
    assert frames(figure)[-1][1] == pytest.approx(wanted)
    assert texts(figure) == ["dog"]


def test_legend_names_the_colours():
    figure = sheet(TILES[:1], legend={"sky": "#4477aa", "sun": "#ccbb44"})
    assert texts(figure) == ["word 0", "sky", "sun"]
    swatches = [to_hex(patch.get_facecolor()) for patch in figure.axes[0].patches[1:]]
    assert swatches == ["#4477aa", "#ccbb44"]


def test_title_can_be_wider_than_the_images():
    narrow, wide = (
        sheet(TILES[:1], title=title).get_size_inches()[0] for title in ("t", "title " * 12)
    )
    assert wide > 2 * narrow


def test_text_is_escaped():
    figure = sheet([Tile(IMAGES[0], "<script>alert(1)</script>", "\x00&", None)], title="$a$ <b>")
    assert not elements(figure, "script")


def test_svg_has_no_external_links():
    figure = to_svg(sheet(TILES))
    addresses = re.findall(r'href="([^"]*)"', figure)
    assert addresses and all(address.startswith(("data:", "#")) for address in addresses)


def test_sheet_without_tiles_is_refused():
    with pytest.raises(DataError, match="`tiles` must hold at least one image"):
        sheet([])


def test_columns_must_be_at_least_one():
    with pytest.raises(ConfigError, match="`columns` must be at least 1, but is 0"):
        sheet(TILES, columns=0)


def test_svg_file_contains_the_plot(tmp_path):
    save(tmp_path / "sheet.svg", sheet(TILES))
    assert (tmp_path / "sheet.svg").read_text() == to_svg(sheet(TILES))


def test_html_file_contains_the_plot(tmp_path):
    save(tmp_path / "sheet.html", sheet(TILES), title="A <title>")
    page = (tmp_path / "sheet.html").read_text()
    assert page.startswith("<!DOCTYPE html>") and to_svg(sheet(TILES)) in page
    assert "<title>A &lt;title&gt;</title>" in page


def test_png_file_is_an_image(tmp_path):
    save(tmp_path / "sheet.png", sheet(TILES, columns=7))
    with Image.open(tmp_path / "sheet.png") as image:
        assert image.width > 4 * image.height > 400


def test_png_file_is_not_upside_down(tmp_path):
    image = np.zeros((40, 40, 3), np.uint8)
    image[:20] = (200, 40, 40)
    save(tmp_path / "sheet.png", sheet([Tile(image)]))
    with Image.open(tmp_path / "sheet.png") as file:
        column = np.asarray(file.convert("RGB"))[:, file.width // 2].tolist()
    assert column.index([200, 40, 40]) < column.index([0, 0, 0])


def test_unknown_suffix_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"must end in .png, .svg, .pdf or .html, .*sheet.bmp'"):
        save(tmp_path / "sheet.bmp", sheet(TILES))
