import logging

import numpy as np
import pytest
from PIL import Image

from regard.plots import emoji, heatmap
from regard.plots.emoji import render

FAMILY = "👨\u200d👩\u200d👧"

needs_font = pytest.mark.skipif(emoji._find_font() is None, reason="no colour font for emoji")


def colorful(image):
    """Return the number of yellow, red or brown pixels, which a heat map does not have."""
    pixels = np.asarray(image.convert("RGB")).astype(int)
    return int((pixels[..., 0] > pixels[..., 2] + 60).sum())


def save_map(path, columns):
    heatmap.save(path, np.eye(2, len(columns)), ["ein", "Hund"], columns=columns)
    return path


@needs_font
def test_emoji_are_images_in_png(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        path = save_map(tmp_path / "map.png", ["👍", FAMILY, "yes👩🏽\u200d🚀!"])
    assert colorful(Image.open(path)) > 300
    assert "boxes" not in caplog.text


@needs_font
def test_emoji_are_images_in_pdf(tmp_path):
    with_emoji = save_map(tmp_path / "a.pdf", ["a", "👍"]).read_bytes()
    assert b"/Subtype /Image" in with_emoji
    assert with_emoji.count(b"/Image") > save_map(
        tmp_path / "b.pdf", ["a", "b"]
    ).read_bytes().count(b"/Image")


@needs_font
def test_each_emoji_stands_above_its_column(tmp_path):
    left = Image.open(save_map(tmp_path / "left.png", ["👍", "b", "c", "d"])).convert("RGB")
    right = Image.open(save_map(tmp_path / "right.png", ["a", "b", "c", "👍"])).convert("RGB")
    centers = []
    for image in (left, right):
        pixels = np.asarray(image).astype(int)
        rows, columns = np.nonzero(pixels[..., 0] > pixels[..., 2] + 60)
        assert rows.max() < image.height / 2
        centers.append(columns.mean() / image.width)
    assert centers[0] < 0.5 < centers[1]


def test_labels_without_emoji_stay_text(tmp_path):
    assert not colorful(Image.open(save_map(tmp_path / "map.png", ["a", "✓"])))


@needs_font
def test_a_joined_emoji_is_one_image():
    font = emoji._find_font()
    single = render("👨", font, color="black").width
    assert render(FAMILY, font, color="black").width < 3 * single
    assert render("yes👨", font, color="black").width > 2 * single


def test_without_a_color_font_characters_are_boxes(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(emoji, "_find_font", lambda: None)
    with caplog.at_level(logging.WARNING):
        save_map(tmp_path / "map.png", ["a", "🧑"])
    assert "map.png shows boxes for 1 characters" in caplog.text
