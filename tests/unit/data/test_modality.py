"""Sources of two parts: a text and an image."""

import pytest
from PIL import Image

from regard.core.errors import DataError
from regard.data.datasets.labelled import read_labelled
from regard.data.image.field import ImageConfig
from regard.data.modality import fit_source, load_source
from regard.data.text.tokenizers import TokenizerConfig
from regard.data.text_image import (
    TextImageConfig,
    TextImageField,
    read_lines_with_images,
    read_with_images,
    split_text_image,
)

CONFIG = TextImageConfig(
    text=TokenizerConfig(kind="word", vocab_size=50), image=ImageConfig(size=8, fit="squash")
)
PAIRS = [("a red square", "shapes/0/1"), ("two stars", "shapes/0/2")]


@pytest.fixture
def field():
    return fit_source(CONFIG, PAIRS)


def test_a_pair_becomes_token_ids_and_an_image(field):
    assert isinstance(field, TextImageField)
    (ids, images), mask = field.stack(field.read_all(PAIRS))
    assert ids.shape == mask.shape == (2, 4)
    assert images.shape == (2, 3, 8, 8)


def test_a_line_is_read_as_a_pair(field):
    (line,), (pair,) = field.read_all(["two stars\tshapes/0/2"]), field.read_all(PAIRS[1:])
    assert line.text == pair.text
    assert (line.image == pair.image).all()


def test_a_loaded_field_reads_the_same_items(field, tmp_path):
    field.save(tmp_path, "source")
    loaded = load_source(CONFIG, tmp_path)
    for one, other in zip(field.read_all(PAIRS), loaded.read_all(PAIRS), strict=True):
        assert one.text == other.text
        assert (one.image == other.image).all()


@pytest.mark.parametrize("raw", ["a text alone", "a\tb\tc", ("a",), ("a", "b", "c"), 3])
def test_a_source_that_is_not_a_pair_is_refused(field, raw):
    with pytest.raises(DataError, match=r"must be a text and an image, separated by a tab, but is"):
        field.read_all([raw])


@pytest.mark.parametrize(("raw", "part"), [(("", "1.png"), "text"), ("text\t ", "image")])
def test_a_pair_with_an_empty_part_is_refused(raw, part):
    with pytest.raises(DataError, match=f"but the {part} of .* is empty") as caught:
        split_text_image(raw)
    assert "\n" not in str(caught.value)


def test_image_paths_are_relative_to_the_file(tmp_path):
    Image.new("RGB", (4, 4)).save(tmp_path / "1.png")
    path = tmp_path / "pairs.tsv"
    path.write_text("dog\t1.png\tyes\ncat\tshapes/0/2\tno\n")
    examples = read_with_images(str(path), read=read_labelled)
    assert [example.source for example in examples] == [
        ("dog", str(tmp_path / "1.png")),
        ("cat", "shapes/0/2"),
    ]
    path.write_text("dog\t1.png\n\nno tab\ncat\tshapes/0/2\tno\n")
    lines = read_lines_with_images(str(path))
    assert list(lines) == [f"dog\t{tmp_path}/1.png", "", "no tab", "cat\tshapes/0/2\tno"]
