import io
import struct
import sys
import wave
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest

from regard.core.errors import DataError
from regard.data.audio.wav import open_recording, read_file, split_span

EXTENSIBLE_TAIL = b"\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"


@pytest.fixture
def samples():
    return np.random.default_rng(0).uniform(-1, 1, (50, 2))


def riff(
    data, *, form=1, bits=16, channels=1, rate=8000, size=None, before=b"", is_extensible=False
):
    """Return the bytes of a WAVE file as specified."""
    stride = channels * bits // 8
    head = struct.pack("<HIIHH", channels, rate, rate * stride, stride, bits)
    if is_extensible:
        tail = struct.pack("<HHIH", 22, bits, 0, form) + EXTENSIBLE_TAIL + b"\x00\x00"
        chunk = struct.pack("<H", 0xFFFE) + head + tail
    else:
        chunk = struct.pack("<H", form) + head
    body = b"WAVE" + before + b"fmt " + struct.pack("<I", len(chunk)) + chunk
    body += b"data" + struct.pack("<I", len(data) if size is None else size) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


def written_by_library(samples, width):
    """Return the file that the standard library writes for integers of `width` bytes."""
    highest = 2 ** (8 * width - 1)
    whole = np.clip((samples * highest).round(), -highest, highest - 1).astype(np.int64)
    raw = (whole + 128 if width == 1 else whole).astype("<i8").tobytes()
    raw = np.frombuffer(raw, np.uint8).reshape(-1, 8)[:, :width].tobytes()
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(samples.shape[1])
        out.setsampwidth(width)
        out.setframerate(8000)
        out.writeframes(raw)
    return file.getvalue()


@pytest.fixture
def put(tmp_path):
    def put(data, name="a.wav"):
        path = tmp_path / name
        path.write_bytes(data)
        return str(path)

    return put


def read(path, **settings):
    return read_file(path, **{"max_seconds": 60, **settings})


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_files_of_the_standard_library_are_read_exactly(samples, put, width):
    waveform = read(put(written_by_library(samples, width)))
    assert waveform.rate == 8000 and waveform.samples.dtype == np.float32
    steps = np.clip((samples * 2 ** (8 * width - 1)).round(), None, 2 ** (8 * width - 1) - 1)
    assert np.allclose(waveform.samples, (steps / 2 ** (8 * width - 1)).mean(1), atol=1e-7)


@pytest.mark.parametrize(("bits", "kind"), [(32, "<f4"), (64, "<f8")])
def test_floats_are_read_exactly(samples, put, bits, kind):
    data = samples.astype(kind).tobytes()
    waveform = read(put(riff(data, form=3, bits=bits, channels=2)))
    assert np.allclose(waveform.samples, samples.mean(1), atol=1e-7)


def test_an_extensible_header_gives_the_same_samples(samples, put):
    data = (samples[:, 0] * 2**15).astype("<i2").tobytes()
    plain = read(put(riff(data), "plain.wav"))
    extensible = read(put(riff(data, is_extensible=True), "extensible.wav"))
    assert np.array_equal(plain.samples, extensible.samples)


def test_other_chunks_are_skipped(put):
    other = b"LIST" + struct.pack("<I", 3) + b"abc\x00"  # odd sizes are padded
    waveform = read(put(riff(b"\x00\x40", before=other)))
    assert waveform.samples.tolist() == [0.5]


def test_an_unknown_size_means_samples_to_the_end_of_the_file(put):
    assert len(read(put(riff(b"\x00" * 10, size=0xFFFFFFFF))).samples) == 5


def test_silence_can_be_read(put):
    assert not read(put(riff(b"\x00" * 100))).samples.any()


def test_a_part_of_a_recording_is_read(samples, put):
    path = put(written_by_library(samples, 2))
    whole, part = read(path), read(f"{path}#t=0.00125,0.0025")
    assert np.array_equal(part.samples, whole.samples[10:20])
    assert split_span(path) is None
    with open_recording(path) as file:
        assert file.num_samples == 50
        assert np.array_equal(file.read(45, 100), whole.samples[45:])


def test_a_member_of_an_archive_is_read(samples, put, tmp_path):
    path = put(written_by_library(samples, 2))
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.write(path, "in/a.wav")
    member = read(f"{tmp_path}/all.zip/in/a.wav")
    assert np.array_equal(member.samples, read(path).samples)


def test_other_formats_go_through_soundfile(samples, put, monkeypatch):
    class FakeDecoder:
        samplerate, frames, channels = 16_000, 50, 2

        def __init__(self, file):
            self.position = 0
            assert file.read(4) == b"fLaC"

        def seek(self, position):
            self.position = position

        def read(self, num, **settings):
            assert settings == {"dtype": "float32", "always_2d": True}
            return samples.astype(np.float32)[self.position : self.position + num]

    module = SimpleNamespace(SoundFile=FakeDecoder, __spec__=SimpleNamespace())
    monkeypatch.setitem(sys.modules, "soundfile", module)
    waveform = read(put(b"fLaC...", "a.flac"))
    assert waveform.rate == 16_000
    assert np.allclose(waveform.samples, samples.mean(1), atol=1e-6)


def test_without_soundfile_the_message_names_the_package_to_install(put, monkeypatch):
    monkeypatch.setattr("regard.data.formats.find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"a.flac .*\(FLAC\).*`pip install 'regard\[audio\]'`"):
        read(put(b"fLaC...", "a.flac"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"RIFF\x04\x00\x00\x00AVI LIST", r"is a video \(AVI\), but must be a recording"),
        (riff(b"\x00" * 10, size=12), "cut off: its header states 12 bytes of samples, but .* 10"),
        (riff(b""), "holds no audio"),
        (riff(b"\x00" * 4, bits=12), r"format 1 in 12 bits, but must have whole numbers"),
        (riff(b"\x00" * 4, form=85), r"format 85 in 16 bits"),
        (riff(b"\x00" * 4, rate=0), "states 0 samples a second in 1 channels"),
        (riff(b"\x00" * 4, channels=0), "8,000 samples a second in 0 channels"),
        (riff(b"")[:30], "its format is cut off"),
        (riff(b"")[:36], "has no chunk with its samples"),
        (riff(b"")[:12], "has no chunk with its format"),
        (riff(b"\xff" * 4, form=3, bits=32), "samples that are infinite or NaN"),
    ],
)
def test_bad_files_are_reported_in_one_line(put, data, message):
    with pytest.raises(DataError, match=rf"a.wav .*{message}") as caught:
        read(put(data))
    assert "\n" not in str(caught.value)


def test_missing_files_and_folders_are_named(tmp_path):
    with pytest.raises(DataError, match=r"none.wav does not exist"):
        read(str(tmp_path / "none.wav"))
    with pytest.raises(DataError, match=r"is a folder, not a recording"):
        read(str(tmp_path))


def test_a_long_recording_is_refused_before_it_is_read(put):
    path = put(riff(b"\x00" * 20_000))
    with pytest.raises(DataError, match=r"has 1.2 seconds, but `max_seconds` allows 1"):
        read(path, max_seconds=1)
    assert len(read(f"{path}#t=0.5,1", max_seconds=1).samples) == 4_000
    with pytest.raises(DataError, match=r"Give a part \(`.*a\.wav#t=0,1`\)"):
        read(path, max_seconds=1)


@pytest.mark.parametrize(
    ("part", "message"),
    [("9,12", r"begins at 9 s, but the recording ends at 1\.25 s"), ("1,0.5", "end after 1 s")],
)
def test_a_part_without_audio_is_an_error_with_the_reason(put, part, message):
    with pytest.raises(DataError, match=message):
        read(f"{put(riff(bytes(20_000)))}#t={part}")


@pytest.mark.parametrize(("suffix", "message"), [("mp3", "is not a recording, or"), ("flac", "is")])
def test_a_damaged_recording_has_no_message_of_the_package(tmp_path, suffix, message):
    soundfile = pytest.importorskip("soundfile", reason="soundfile is not installed")
    path = tmp_path / f"cut.{suffix}"
    soundfile.write(path, np.sin(np.arange(8_000) / 9), 8_000)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(
        DataError, match=rf"cut\.{suffix} {message} damaged.* Fetch it again\.$"
    ) as e:
        read(str(path))
    assert "psf" not in str(e.value) and "pipe" not in str(e.value)


def test_a_recording_without_samples_may_be_cut_off(put, monkeypatch):
    class EmptyDecoder:
        samplerate, frames, channels = 16_000, 0, 1

        def __init__(self, file):
            pass

    module = SimpleNamespace(SoundFile=EmptyDecoder, __spec__=SimpleNamespace())
    monkeypatch.setitem(sys.modules, "soundfile", module)
    with pytest.raises(DataError, match=r"half\.ogg holds no audio: it is empty or cut off"):
        read(put(b"OggS\0", "half.ogg"))
