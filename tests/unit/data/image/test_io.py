import io
import re
import struct
import sys
import zipfile
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from regard.core.errors import DataError
from regard.data.archives import exists, find_archive, members
from regard.data.image.io import open_image

GRADIENT = np.arange(0, 240, 10, dtype=np.uint8).reshape(4, 6)


@pytest.fixture
def save(tmp_path):
    """Function that saves an image."""

    def save(image, name="image.png", **options):
        path = tmp_path / name
        image.save(path, **options)
        return str(path)

    return save


def pixels(reference, **options):
    return np.asarray(open_image(reference, **options))


def test_grey_and_colour_are_read_as_saved(save):
    colour = np.random.default_rng(0).integers(0, 256, (3, 5, 3), dtype=np.uint8)
    assert (pixels(save(Image.fromarray(GRADIENT), "a.png")) == GRADIENT).all()
    assert (pixels(save(Image.fromarray(colour), "b.png")) == colour).all()


def test_black_and_white_becomes_grey(save):
    image = Image.fromarray(GRADIENT > 100)
    assert image.mode == "1"
    assert (pixels(save(image)) == 255 * (GRADIENT > 100)).all()


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_applied(save, orientation):
    upright = np.zeros((16, 32), np.uint8)
    upright[:8, :8] = 255  # white at the top left in every orientation
    turns = {2: [0], 3: [3], 4: [1], 5: [5], 6: [2], 7: [6], 8: [4]}
    # How the camera stores it is the inverse of what the tag asks for.
    stored = Image.fromarray(upright)
    for turn in turns.get(orientation, []):
        stored = stored.transpose(Image.Transpose(turn))
    exif = Image.Exif()
    exif[0x0112] = orientation
    found = pixels(save(stored, "a.png", exif=exif))
    assert found.shape == upright.shape and (found == upright).all()


def test_transparent_pixels_are_put_on_white(save):
    image = Image.new("RGBA", (2, 1), (255, 0, 0, 255))
    image.putpixel((1, 0), (0, 0, 0, 0))
    assert pixels(save(image)).tolist() == [[[255, 0, 0], [255, 255, 255]]]


def test_half_transparent_grey_is_half_white(save):
    assert pixels(save(Image.new("LA", (1, 1), (0, 128)))).tolist() == [[[127, 127, 127]]]


def test_palette_colours_and_transparency_are_applied(save):
    image = Image.new("P", (2, 1))
    image.putpalette([10, 20, 30, 40, 50, 60])
    image.putpixel((1, 0), 1)
    assert pixels(save(image, "a.png")).tolist() == [[[10, 20, 30], [40, 50, 60]]]
    see_through = pixels(save(image, "b.png", transparency=1))
    assert see_through.tolist() == [[[10, 20, 30], [255, 255, 255]]]


def test_cmyk_becomes_colour(save):
    found = pixels(save(Image.new("CMYK", (8, 8), (0, 255, 255, 0)), "a.jpg", quality=100))
    assert np.abs(found.astype(int) - [255, 0, 0]).max() <= 2


@pytest.mark.parametrize("name", ["a.png", "a.tiff"])
def test_16_bits_are_divided_by_257(save, name):
    values = np.array([[0, 257, 128 * 257, 65535]], np.uint16)
    assert pixels(save(Image.fromarray(values), name)).tolist() == [[0, 1, 128, 255]]


def test_dark_16_bits_stay_dark(save):
    assert pixels(save(Image.fromarray(np.full((1, 1), 200, np.uint16)))).tolist() == [[1]]


def test_32_bits_are_scaled_by_their_own_white(save):
    values = np.array([[-5, 0, 2**31 - 1]], np.int32)
    assert pixels(save(Image.fromarray(values), "a.tiff")).tolist() == [[0, 0, 255]]


@pytest.mark.parametrize(
    ("values", "expected"),
    [([0.0, 0.2, 1.0], [0, 51, 255]), ([0.0, 7.0, 255.0], [0, 7, 255]), ([0, 65535.0], [0, 255])],
)
def test_floats_are_scaled_by_their_range(save, values, expected):
    image = Image.fromarray(np.array([values], np.float32))
    assert pixels(save(image, "a.tiff")).tolist() == [expected]


def test_nan_becomes_black(save):
    image = Image.fromarray(np.array([[np.nan, np.inf, 1.0]], np.float32))
    assert pixels(save(image, "a.tiff")).tolist() == [[0, 0, 255]]


@pytest.mark.parametrize("name", ["a.gif", "a.webp"])
def test_first_frame_of_an_animation_is_read(save, name):
    first, second = Image.new("RGB", (8, 8), "red"), Image.new("RGB", (8, 8), "blue")
    options = {"lossless": True} if name.endswith("webp") else {}
    path = save(first, name, save_all=True, append_images=[second], **options)
    assert (pixels(path) == [255, 0, 0]).all()


def test_format_depends_on_the_content_not_the_suffix(save, tmp_path):
    path = Path(save(Image.fromarray(GRADIENT), "a.png")).rename(tmp_path / "a.jpg")
    assert (pixels(str(path)) == GRADIENT).all()


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def header_of(width, height):
    """Return a PNG whose header states a large size, without pixels."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"")


def test_large_image_is_refused_by_its_header(tmp_path):
    path = tmp_path / "huge.png"
    path.write_bytes(header_of(12_000, 10_000))
    claim = r"huge.png has 12,000 × 10,000 pixels, 120.0 megapixels, but `max_pixels` allows 50.0"
    with pytest.raises(DataError, match=claim):
        open_image(str(path))
    # Allowed to be as large, it is found to be empty: so it was not decoded before.
    with pytest.raises(DataError, match=r"huge.png is a damaged image"):
        open_image(str(path), max_pixels=120_000_000)


def test_image_beyond_the_limit_of_pillow_is_refused(tmp_path):
    path = tmp_path / "bomb.png"
    path.write_bytes(header_of(100_000, 100_000))
    claim = r"bomb.png has over 179.0 megapixels, but `max_pixels` allows {}. Make the image"
    for max_pixels, limit in ((50_000_000, "50.0"), (10**12, "179.0")):
        with pytest.raises(DataError, match=claim.format(limit)):
            open_image(str(path), max_pixels=max_pixels)


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.gif", "a.tiff", "a.webp", "a.bmp"])
def test_truncated_file_is_named_in_one_line(save, name):
    noise = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    path = save(Image.fromarray(noise), name)
    data = Path(path).read_bytes()
    Path(path).write_bytes(data[: len(data) // 2])
    with pytest.raises(DataError, match=rf"{re.escape(path)} is (a damaged|not an) image") as info:
        open_image(path)
    assert "\n" not in str(info.value)


@pytest.mark.parametrize("content", [b"", b"no image at all", b"\x89PNG\r\n\x1a\n"])
def test_file_that_is_not_an_image_is_named(tmp_path, content):
    path = tmp_path / "a.png"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"a.png is (a damaged|not an) image"):
        open_image(str(path))


def test_missing_file_and_folder_are_named(tmp_path):
    with pytest.raises(DataError, match=r"none.png does not exist"):
        open_image(str(tmp_path / "none.png"))
    with pytest.raises(DataError, match=r"is a folder, not an image"):
        open_image(str(tmp_path))


class TestArchive:
    @pytest.fixture
    def archive(self, tmp_path):
        path = tmp_path / "images.zip"
        with zipfile.ZipFile(path, "w") as file:
            for number in range(2):
                data = io.BytesIO()
                Image.fromarray(GRADIENT + np.uint8(number)).save(data, "png")
                file.writestr(f"inner/{number}.png", data.getvalue())
        return path

    def test_member_is_opened_by_a_path_through_the_archive(self, archive):
        assert (pixels(f"{archive}/inner/1.png") == GRADIENT + 1).all()

    def test_missing_member_is_named(self, archive):
        with pytest.raises(DataError, match=r"2.png does not exist: the archive has no such"):
            open_image(f"{archive}/inner/2.png")

    def test_changed_archive_is_opened_again(self, archive):
        assert (pixels(f"{archive}/inner/0.png") == GRADIENT).all()
        with zipfile.ZipFile(archive, "a") as file:
            data = io.BytesIO()
            Image.fromarray(GRADIENT + np.uint8(9)).save(data, "png")
            file.writestr("new.png", data.getvalue())
        assert (pixels(f"{archive}/new.png") == GRADIENT + 9).all()

    def test_damaged_archive_is_named(self, tmp_path):
        (tmp_path / "bad.zip").write_bytes(b"PK nothing")
        with pytest.raises(DataError, match=r"bad.zip is a damaged archive"):
            open_image(str(tmp_path / "bad.zip" / "a.png"))

    def test_damaged_member_is_named(self, archive):
        data = archive.read_bytes()
        archive.write_bytes(data.replace(b"IDAT", b"XXXX", 1))
        with pytest.raises(DataError, match=r"inner/0.png cannot be read: Bad CRC-32"):
            open_image(f"{archive}/inner/0.png")

    def test_files_and_members_exist(self, archive, tmp_path):
        assert exists(f"{archive}/inner/1.png") and exists(str(archive))
        assert not exists(f"{archive}/inner/2.png") and not exists(str(tmp_path / "x.png"))
        assert members(str(archive)) == ["inner/0.png", "inner/1.png"]

    def test_folder_named_like_an_archive_is_not_an_archive(self, tmp_path):
        (tmp_path / "a.zip").mkdir()
        assert find_archive(str(tmp_path / "a.zip" / "b.png")) is None


class TestHeic:
    HEIC = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(100)

    def test_without_its_package_the_message_names_it(self, tmp_path, monkeypatch):
        monkeypatch.setattr("regard.data.formats.find_spec", lambda name: None)
        (tmp_path / "a.heic").write_bytes(self.HEIC)
        with pytest.raises(DataError, match=r"a.heic is an image .*`pip install pillow-heif`"):
            open_image(str(tmp_path / "a.heic"))

    def test_its_package_is_registered(self, tmp_path, monkeypatch):
        calls = []
        module = SimpleNamespace(register_heif_opener=lambda: calls.append(1), __spec__="found")
        monkeypatch.setitem(sys.modules, "pillow_heif", module)
        (tmp_path / "a").write_bytes(self.HEIC)
        with pytest.raises(DataError, match="a is not an image, or damaged"):
            open_image(str(tmp_path / "a"))
        assert calls == [1]
