"""Modalities: sources of a text and an image, and detection of files."""

from pathlib import Path

import pytest
from PIL import Image

from regard.core.errors import DataError
from regard.data.datasets.labelled import read_labelled
from regard.data.example import Example
from regard.data.image.field import ImageConfig
from regard.data.modality import (
    MODALITIES,
    check_source,
    check_sources,
    detect_modality,
    fit_source,
    load_source,
    read_any_pairs,
)
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


class TestFiles:
    """Columns and folders of files."""

    @pytest.fixture
    def listed(self, tmp_path):
        def listed(*names, target="{}", exist=True):
            for name in names if exist else ():
                path = tmp_path / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(b"\0")
            lines = [f"{name}\t{target.format(number)}\n" for number, name in enumerate(names)]
            path = tmp_path / "list.tsv"
            path.write_text("".join(lines))
            return str(path)

        return listed

    @pytest.mark.parametrize(
        ("suffix", "modality"),
        [("mp3", "audio"), ("m4a", "audio"), ("HEIC", "image"), ("mp4", "video"), ("wav", "audio")],
    )
    def test_every_known_suffix_names_its_modality(self, listed, suffix, modality):
        for exist in (True, False):
            examples = read_any_pairs(listed(f"a/1.{suffix}", f"a/2.{suffix}", exist=exist))
            assert detect_modality(examples).name == modality

    def test_existing_files_of_unknown_format_are_refused(self, listed):
        with pytest.raises(DataError, match=r"names files as sources \(first: a/1.xyz\).*\(WAVE"):
            read_any_pairs(listed("a/1.xyz", "a/2.doc", "a/3.xyz"))

    def test_names_of_unknown_format_without_files_are_text(self, listed):
        examples = read_any_pairs(listed("a/1.xyz", "a/2.xyz", exist=False))
        assert detect_modality(examples).name == "text"

    def test_existing_files_as_targets_are_refused(self, listed):
        listed("0.png", "1.png")
        with pytest.raises(DataError, match=r"targets \(first: 0.png\).*--recipe scenes-questions"):
            read_any_pairs(listed("a dog", "a cat", exist=False, target="{}.png"))

    @pytest.mark.parametrize("read", ["read_pairs", "read_labelled"])
    def test_files_are_refused_by_readers_of_text(self, listed, read):
        path = listed("1.mp3", "2.mp3")
        with pytest.raises(DataError, match=r"first: 1.mp3\).* reads text.* recordings"):
            getattr(MODALITIES["text"], read)(path, None)

    def test_folders_of_frames_are_refused_as_text(self, listed):
        path = listed("a/1.png", "b/1.png")
        Path(path).write_text("a\tx\nb\ty\n")
        with pytest.raises(DataError, match="--recipe moving-laptop"):
            read_any_pairs(path)

    def test_a_folder_is_of_the_medium_of_most_files(self, listed, tmp_path):
        listed("in/a/1.mp3", "in/a/2.jpg", "in/b/3.jpg", "in/b/4.mp4")
        assert [one.target for one in read_any_pairs(str(tmp_path / "in"))] == ["a", "b"]
        listed("in/a/5.mp3", "in/b/6.mp3")
        sources = [Path(one.source).name for one in read_any_pairs(str(tmp_path / "in"))]
        assert sources == ["1.mp3", "5.mp3", "6.mp3"]

    def test_a_folder_of_unknown_files_names_their_suffixes(self, listed, tmp_path):
        listed("in/a/1.xyz", "in/b/2.doc", "in/.hidden.wav")
        with pytest.raises(DataError, match=r"files such as .doc, .xyz\..*WAVE.*JPEG"):
            read_any_pairs(str(tmp_path / "in"))

    def test_a_text_with_an_image_is_detected(self):
        assert detect_modality([Example(("what", "1.png"))]).name == "text+image"
        assert detect_modality([Example(("what", "why"))]).name == "text"

    def test_a_source_that_is_a_file_is_refused_by_text_models(self, tmp_path):
        path = tmp_path / "o.mp3"
        path.write_bytes(b"ID3\4\0")
        check_source(str(path), MODALITIES["audio"])
        check_source("o.mp3", MODALITIES["text"])
        with pytest.raises(DataError, match=r"o.mp3 is a recording \(MP3\), but must be text"):
            check_source(str(path), MODALITIES["text"])


def test_list_of_files_is_not_a_list_of_texts(tmp_path):
    (tmp_path / "a.mp3").write_bytes(b"ID3")
    path = tmp_path / "list.txt"
    path.write_text("a.mp3\na.mp3\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"list\.txt names files \(first: a\.mp3\)"):
        check_sources(str(path), iter(["a.mp3", "a.mp3"]))
    texts = check_sources(str(path), iter(["one dog", "a.mp3", "two dogs"]))
    assert list(texts) == ["one dog", "a.mp3", "two dogs"]
