"""File formats of recordings, images and videos."""

import re
from pathlib import Path

import pytest

from regard.core.errors import DataError
from regard.data import formats
from regard.data.formats import AUDIO, IMAGE, TABLES, VIDEO, check_is_text, identify

DOCUMENTS = Path(__file__).parents[3] / "docs"

HEADS = {
    b"RIFF\x24\0\0\0WAVEfmt ": ("recording", "WAVE"),
    b"ID3\x04\0\0\0\0\0\x23TSSE": ("recording", "MP3"),
    b"\xff\xfb\x90\x64\0\0": ("recording", "MP3"),
    b"fLaC\0\0\0\x22": ("recording", "FLAC"),
    b"OggS\0\x02\0\0": ("recording", "Ogg"),
    b"\0\0\0\x20ftypM4A \0\0\0\0": ("recording", "AAC"),
    b"#!AMR\n": ("recording", "AMR"),
    b"\xff\xd8\xff\xe0\0\x10JFIF": ("image", "JPEG"),
    b"\x89PNG\r\n\x1a\n": ("image", "PNG"),
    b"RIFF\x24\0\0\0WEBPVP8 ": ("image", "WebP"),
    b"\0\0\0\x18ftypheic\0\0\0\0": ("image", "HEIC"),
    b"\0\0\0\x20ftypavif\0\0\0\0": ("image", "AVIF"),
    b"\0\0\0\x20ftypisom\0\0\x02\0": ("video", "MP4"),
    b"\0\0\0\x14ftypqt  \0\0\0\0": ("video", "QuickTime"),
    b"\0\0\0\x08wide\0\0\0\0mdat": ("video", "QuickTime"),
    b"RIFF\x24\0\0\0AVI LIST": ("video", "AVI"),
    b"\x1aE\xdf\xa3\xa3B\x86": ("video", "Matroska"),
}


@pytest.fixture
def without_packages(monkeypatch):
    monkeypatch.setattr(formats, "find_spec", lambda name: None)


@pytest.fixture
def with_packages(monkeypatch):
    monkeypatch.setattr(formats, "find_spec", lambda name: name)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.noun)
def test_suffixes_are_distinct_and_signatures_are_valid(table):
    suffixes = [suffix for row in table.rows for suffix in row.suffixes]
    assert len(set(suffixes)) == len(suffixes)
    assert all(re.fullmatch(r"\.[a-z0-9]+", suffix) for suffix in suffixes)
    for row in table.rows:
        re.compile(row.signature)
        assert not row.package or row.package in formats.INSTALL


@pytest.mark.parametrize(("head", "expected"), HEADS.items())
def test_first_bytes_identify_medium_and_format(head, expected):
    table, row = identify("a.txt", head)
    assert (table.noun, row.name) == expected
    with pytest.raises(DataError, match=r"^a.txt is an? .*, but must be text.$"):
        check_is_text("a.txt", head)


@pytest.mark.parametrize(
    "head",
    [
        b"The wide river",
        b"ID3 tags hold titles",
        b"BMW builds cars",
        b"GIF is a format",
        b"OggS and fLaC",
        b"RIFF",
        b"",
        "a\tb\n".encode("utf-16"),
        "größer".encode(),
    ],
)
def test_text_is_not_identified_as_a_medium(head):
    assert identify("a.txt", head) is None
    check_is_text("a.txt", head)


def test_a_binary_file_is_identified_by_its_suffix():
    table, row = identify("x/A.MP3", b"\0\0\0\0")
    assert (table, row.name) == (AUDIO, "MP3")
    assert identify("a.bin", b"\0\0\0\0") is None


@pytest.mark.parametrize(
    ("table", "name", "claims"),
    [
        (
            AUDIO,
            "a b.mp3",
            ["MP3", "`pip install 'regard[audio]'`", "-i 'in/a b.mp3' 'in/a b'.wav"],
        ),
        (AUDIO, "o.m4a", ["AAC", "`ffmpeg -i in/o.m4a in/o.wav`"]),
        (
            IMAGE,
            "o.heic",
            ["HEIC", "`pip install pillow-heif`", "`heif-convert in/o.heic in/o.png`"],
        ),
        (IMAGE, "o.CR2", ["camera raw", "`magick in/o.CR2 in/o.png`"]),
        (VIDEO, "clip.mp4", ["MP4", "`ffmpeg -i in/clip.mp4 in/clip.gif`"]),
    ],
)
def test_a_format_that_is_not_read_names_package_and_conversion(
    without_packages, table, name, claims
):
    with pytest.raises(DataError, match=f"^in/{name} is an? {table.noun} in a format") as caught:
        table.check(f"in/{name}", b"?")
    assert all(claim in str(caught.value) for claim in claims), caught.value
    assert "\n" not in str(caught.value)


def test_formats_of_installed_packages_are_read(with_packages):
    AUDIO.check("o.mp3", b"ID3\4\0")
    IMAGE.check("o.heic", b"?")
    assert AUDIO.packages == ("soundfile",)
    with pytest.raises(DataError, match="AAC"):
        AUDIO.check("o.mp3", b"\0\0\0\x20ftypM4A \0\0\0\0")  # the content counts, not the suffix


def test_content_counts_more_than_the_suffix(without_packages):
    IMAGE.check("o.heic", b"\xff\xd8\xff\xe0")


def test_a_file_of_another_medium_is_named(without_packages):
    message = str(IMAGE.mismatch("o.png", b"ID3\4\0"))
    assert message == "o.png is a recording (MP3), but must be an image."
    assert "damaged. Fetch" in str(AUDIO.mismatch("o.wav", b"?"))
    assert "WAVE, with `pip install 'regard[audio]'` also FLAC" in str(AUDIO.mismatch("o", b"?"))


@pytest.mark.parametrize(("table", "page"), [(AUDIO, "audio"), (IMAGE, "images"), (VIDEO, "video")])
def test_every_suffix_is_documented(table, page):
    text = (DOCUMENTS / f"{page}.md").read_text(encoding="utf-8")
    assert [suffix for suffix in sorted(table.suffixes) if f"`{suffix}`" not in text] == []
