"""Hostile data: a message of one line and exit code 2, without much memory, time or damage."""

import gzip
import io
import os
import socket
import struct
import zipfile
import zlib

import pytest
from PIL import Image

from regard.core.errors import DataError
from regard.data import expansion
from regard.data.archives import open_bytes
from regard.data.audio.wav import open_recording, read_file
from regard.data.image.files import IMAGE_FILES
from regard.data.image.io import open_image
from regard.data.image.resize import FITS, Frame
from regard.data.text.lines import read_bytes, read_lines
from regard.data.video.frames import read_video
from regard.tasks import source_task

EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n%%EOF\n"


@pytest.fixture
def little_free(monkeypatch):
    """Compressed data may expand by 100 times only."""
    monkeypatch.setattr(expansion, "FREE_BYTES", 1 << 16)


@pytest.mark.usefixtures("little_free")
@pytest.mark.parametrize("content", [b"\n", b"a", b"a b\tc\n", b"\0"])
@pytest.mark.parametrize("command", [("train",), ("data", "show")])
def test_gzip_bomb_is_refused(refused, tmp_path, monkeypatch, content, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bomb.tsv.gz").write_bytes(gzip.compress(content * 900_000))
    message = refused(*command, "bomb.tsv.gz")
    assert message.startswith("bomb.tsv.gz")


@pytest.mark.usefixtures("little_free")
@pytest.mark.parametrize("read", [read_bytes, lambda path: list(read_lines(path))])
def test_gzip_bomb_is_read_in_part(tmp_path, read):
    path = tmp_path / "bomb.txt.gz"
    path.write_bytes(gzip.compress(b"a b\n" * 2_000_000))
    with pytest.raises(DataError, match=r"bomb.txt.gz expands .* over 100 times") as raised:
        read(path)
    size = int(str(raised.value).partition(" to ")[2].partition(" ")[0].replace(",", ""))
    assert size < 1_000_000 + (1 << 16)


def test_ordinary_gzip_files_are_read(tmp_path):
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(b"the same line\n" * 100_000))
    assert sum(1 for _ in read_lines(path)) == 100_000


@pytest.mark.usefixtures("little_free")
def test_bomb_in_an_archive_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "images.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.png", b"\0" * 9_000_000)
    with pytest.raises(DataError, match=r"images.zip/a.png expands from .* to 9,000,000 bytes"):
        open_bytes(f"{path}/a.png", what="an image")


def test_huge_member_of_an_archive_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(expansion, "MAX_MEMBER_BYTES", 99)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.png", b"\1" * 100)
    with pytest.raises(DataError, match=r"a.png has 100 bytes, but .* may have 99. Unpack"):
        open_bytes(f"{tmp_path}/a.zip/a.png", what="an image")


def test_member_with_a_false_size_is_damaged(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.png", b"\0" * 9_000)
    stated = struct.pack("<I", 9_000)
    path.write_bytes(path.read_bytes().replace(stated, struct.pack("<I", 90)))
    with pytest.raises(DataError, match=r"a.png cannot be read"):
        open_bytes(f"{path}/a.png", what="an image")


def png(path, size=(8, 8)):
    Image.new("L", size).save(path, "PNG")
    return str(path)


@pytest.mark.parametrize("name", ["../out.png", "/out.png", "a/../../out.png"])
def test_path_in_an_archive_names_a_member_only(tmp_path, name):
    png(tmp_path / "out.png", (9, 9))
    folder = tmp_path / "data"
    folder.mkdir()
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        archive.write(png(folder / "in.png"), name)
    (reference,) = IMAGE_FILES.list_references(f"{folder}/a.zip")
    assert open_image(reference).size == (8, 8)


def test_symbolic_link_in_an_archive_is_not_followed(tmp_path):
    png(tmp_path / "secret.png")
    link = zipfile.ZipInfo("link.png")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(link, str(tmp_path / "secret.png"))
    with pytest.raises(DataError, match=r"link.png is not an image|damaged"):
        open_image(f"{tmp_path}/a.zip/link.png")


@pytest.mark.parametrize("name", ["a.png", "a.eps", "a.jpg", "a.gif"])
def test_postscript_never_starts_a_program(tmp_path, monkeypatch, name):
    started = []
    monkeypatch.setattr("subprocess.Popen", lambda *args, **kwargs: started.append(args))
    monkeypatch.setattr("subprocess.check_call", lambda *args, **kwargs: started.append(args))
    (tmp_path / name).write_bytes(EPS)
    reference = str(tmp_path / name)
    for read in (open_image, lambda path: read_video(path, 2, Frame(8))):
        with pytest.raises(DataError):
            read(reference)
    assert not IMAGE_FILES.has_signature(tmp_path / name)
    assert started == []


@pytest.mark.parametrize("kind", ["FITS", "SGI", "MSP"])
def test_image_of_an_unlisted_format_is_refused(tmp_path, kind):
    path = tmp_path / "a.png"
    if kind == "SGI":
        Image.new("L", (4, 4)).save(path, kind)
    else:
        path.write_bytes(b"SIMPLE  =                    T" if kind == "FITS" else b"DanM" * 30)
    with pytest.raises(DataError, match="is not an image, or damaged"):
        open_image(str(path))


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


@pytest.mark.parametrize("size", [(1, 10**9), (10**9, 1), (60_000, 60_000), (2**31 - 1,) * 2])
def test_image_of_many_pixels_is_refused_before_it_is_decoded(tmp_path, size):
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", *size, 8, 0, 0, 0, 0))
    path = tmp_path / "bomb.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"\0" * 9)))
    with pytest.raises(DataError, match=r"bomb.png has .* but `max_pixels` allows"):
        open_image(str(path))


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("size", [(1, 200_000), (200_000, 1)])
def test_thin_image_is_resized_to_a_square(fit, size):
    assert FITS[fit](Image.new("L", size), 16).size == (16, 16)


def test_frame_that_enlarges_a_video_is_refused(tmp_path):
    frames = [Image.new("L", (8, 8), color) for color in (0, 99)]
    buffer = io.BytesIO()
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:])
    data = bytearray(buffer.getvalue())
    second = data.rindex(b"\x2c")  # the descriptor of the last frame
    data[second + 5 : second + 9] = struct.pack("<HH", 9_000, 9_000)
    (tmp_path / "a.gif").write_bytes(data)
    with pytest.raises(DataError, match=r"a.gif (has 9,000 × 9,000 pixels|is a damaged video)"):
        read_video(str(tmp_path / "a.gif"), 2, Frame(8))


def wave(*, rate=16_000, channels=1, size=8, fmt=16, extra=b""):
    form = struct.pack("<HHIIHH", 1, channels, rate, 0, 0, 16) + extra
    head = b"RIFF\xff\xff\xff\xffWAVEfmt " + struct.pack("<I", fmt) + form
    return head + b"data" + struct.pack("<I", size) + b"\1\0" * 4


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (wave(channels=65_535), "in 65535 channels, but must have .* in 1 to 64 channels"),
        (wave(rate=4_000_000_000), "states 4,000,000,000 samples a second"),
        (wave(rate=1), "states 1 samples a second"),
        (wave(size=4_000_000_000), "cut off: its header states 4,000,000,000 bytes"),
        (wave(fmt=4_000_000_000), "has no chunk with its samples"),
    ],
)
def test_recording_with_an_absurd_header_is_refused(tmp_path, data, message):
    path = tmp_path / "a.wav"
    path.write_bytes(data)
    with pytest.raises(DataError, match=message):
        read_file(str(path), max_seconds=30)


def test_long_format_chunk_is_skipped(tmp_path):
    path = tmp_path / "a.wav"
    path.write_bytes(wave(fmt=16 + 101, extra=b"\0" * 102))
    with open_recording(str(path)) as file:
        assert file.num_samples == 4


@pytest.fixture(params=["pipe", "device", "socket"])
def special(request, tmp_path, monkeypatch):
    """Path of a file that would be waited for, or never ends."""
    if request.param == "pipe":
        os.mkfifo(tmp_path / "pipe.tsv")
        return tmp_path / "pipe.tsv"
    if request.param == "device":
        return "/dev/zero"
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.tsv")
    return tmp_path / "socket.tsv"


@pytest.mark.parametrize(
    "command", [("train",), ("data", "show"), ("data", "links"), ("predict", "RUN")]
)
def test_pipes_and_devices_are_refused_as_data(refused, tiny_run, special, command, tmp_path):
    words = [tiny_run.folder if word == "RUN" else word for word in command]
    assert "but must be a file" in refused(*words, special)


def test_pipes_are_refused_as_images_recordings_and_recipes(refused, tmp_path):
    for name in ("a.png", "a.wav", "a.gif", "a.toml"):
        os.mkfifo(tmp_path / name)
    for read in (open_image, lambda path: read_file(path, max_seconds=3)):
        with pytest.raises(DataError, match="is a pipe, but must be a file"):
            read(f"{tmp_path}/a.{'png' if read is open_image else 'wav'}")
    assert "is a pipe" in refused("explain", tmp_path / "a.toml")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"source": ' + "[" * 100_000, "nested too deeply"),
        ('{"source": ' + "[" * 960 + "]" * 960 + ', "target": "a"}', "nested too deeply"),
        ('{"source": ' + "9" * 5_000 + "}", "too many digits"),
        ('{"source": "a", "target": "b", "alignment": [[1e999, 0]]}', "must have links such as"),
        ('{"source": "\\ud800", "target": "b"}', "half a character"),
    ],
)
def test_hostile_json_is_refused(refused, tmp_path, line, message):
    path = tmp_path / "pairs.jsonl"
    path.write_text(f"{line}\n" * 3, encoding="utf-8")
    assert message in refused("data", "show", path)


class TestLongTexts:
    """Texts of more tokens than memory and time allow are truncated and counted."""

    @pytest.fixture(autouse=True)
    def _few_tokens(self, monkeypatch):
        monkeypatch.setattr(source_task, "MAX_TOKENS", 250)

    @pytest.fixture
    def long(self, tmp_path):
        path = tmp_path / "long.tsv"
        path.write_text("a b\tb a\n" + "a " * 900 + "\t" + "b " * 900 + "\n", encoding="utf-8")
        return path

    @pytest.mark.parametrize("command", ["predict", "score", "evaluate"])
    def test_are_truncated_by_commands(self, regard, tiny_run, long, command):
        result = regard(command, tiny_run.folder, long)
        assert result.code == 0
        assert "truncated 1 of 2 sources to 250 tokens, the maximum" in result.err

    def test_are_truncated_by_embed(self, regard, tiny_run, long, tmp_path):
        result = regard("embed", tiny_run.folder, long, "--out", tmp_path / "v.npy")
        assert result.code == 0
        assert "truncated 1 of 2 sources to 250 tokens" in result.err

    def test_are_truncated_by_language_models(self, regard, task_run, tmp_path):
        run = task_run("language_model")
        result = regard("predict", run.folder, stdin="the dog\n" + "the dog " * 400 + "\n")
        assert result.code in (0, 2), result
        assert "to 250 tokens, the maximum" in result.err

    def test_are_refused_by_masked_language_models(self, refused, task_run, monkeypatch):
        monkeypatch.setattr("regard.tasks.masked_lm.task.MAX_TOKENS", 250)
        run = task_run("masked_language_model")
        message = refused("predict", run.folder, stdin="the <mask> " * 400 + "\n")
        assert "at most 250 tokens" in message

    def test_are_kept_if_training_had_longer_ones(self, tiny_run, monkeypatch):
        monkeypatch.setattr(source_task, "MAX_TOKENS", 3)
        items = [[1] * 200]
        assert source_task.limit_texts(items, 200, noun="texts") is items
