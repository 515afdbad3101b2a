import json
import struct
import wave

import numpy as np
import pytest

from regard.data.audio.decoding import open_audio
from regard.data.datasets.catalog import find_data

TINY = (
    "data.source.num_mels=8",
    "data.source.max_seconds=5.0",
    "model.encoder.dim=4",
    "train.max_steps=2",
    "train.validate_every=2",
)
TINY_TRANSCRIBER = (*TINY, "model.decoder.dim=6", "model.decoder.embedding_dim=4", "search.beams=2")


def save(path, samples):
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes((samples * 2**15).round().astype("<i2").tobytes())
    return path


def samples_of(example):
    return open_audio(example.source, max_seconds=9).samples


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder of recordings with transcripts in a file; one recording is damaged."""
    root = tmp_path_factory.mktemp("recordings")
    rows = []
    for number, example in enumerate(find_data("tones:30").train):
        save(root / f"in/{number}.wav", samples_of(example))
        rows.append(f"in/{number}.wav\t{example.target}\n")
    (root / "in/30.wav").write_bytes(b"RIFF no recording")
    rows.append("in/30.wav\tlow low low\n")
    (root / "transcripts.tsv").write_text("".join(rows), encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def run(folder):
    from typer.testing import CliRunner

    from regard.cli.main import app

    arguments = [
        "train",
        str(folder / "transcripts.tsv"),
        "--recipe",
        "chan2016-laptop",
        *TINY_TRANSCRIBER,
    ]
    out = folder / "run"
    result = CliRunner().invoke(app, [*arguments, "--out", str(out), "--device", "cpu"])
    assert result.exit_code == 0, result.stderr
    assert "skipped 1 of 31 examples whose recording cannot be read" in result.stderr
    assert "frames of 8 mel bins" in result.stderr
    return out


def test_recording_folder_and_list_give_the_same_predictions(regard, run, folder, tmp_path):
    names = [folder / f"in/{number}.wav" for number in (0, 1)]
    alone = [regard("predict", run, name).lines for name in names]
    assert [len(lines) for lines in alone] == [1, 1]
    (tmp_path / "list.txt").write_text("".join(f"{name}\n" for name in names))
    assert regard("predict", run, tmp_path / "list.txt").lines == [*alone[0], *alone[1]]
    for number in (0, 1):
        save(tmp_path / f"two/{number}.wav", open_audio(str(names[number]), max_seconds=9).samples)
    assert regard("predict", run, tmp_path / "two").lines == [*alone[0], *alone[1]]


def test_long_recording_is_transcribed_in_segments(regard, run, folder, tmp_path):
    strings = [samples_of(example) for example in find_data("tones:30").train[:6]]
    samples = np.concatenate([np.pad(string, (0, 3000)) for string in strings])
    path = save(tmp_path / "long.wav", samples)
    (line,) = regard("predict", run, path, "--chunk", 3, "--json").lines
    found = json.loads(line)
    assert found["source"] == str(path) and len(found["parts"]) >= 3
    assert found["parts"][0]["begin"] == 0
    assert found["parts"][-1]["end"] == pytest.approx(len(samples) / 8000)
    spans = [f"{path}#t={part['begin']:.6f},{part['end']:.6f}" for part in found["parts"]]
    texts = [text for span in spans for text in regard("predict", run, span).lines]
    assert [part["text"] for part in found["parts"]] == texts
    assert regard("predict", run, path, "--chunk", 3).lines == [found["text"]]


def test_bad_recordings_have_their_own_messages(refused, run, folder, tmp_path):
    assert "30.wav is not a " in refused("predict", run, folder / "in/30.wav")
    assert "none.wav does not exist" in refused("predict", run, tmp_path / "none.wav")
    long = save(tmp_path / "long.wav", np.zeros(48_000))
    assert "has 6.0 seconds, but `max_seconds` allows 5" in refused("predict", run, long)
    assert "holds no audio" in refused("predict", run, save(tmp_path / "no.wav", np.zeros(0)))


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_unreadable_recording_among_others_has_an_empty_line(
    regard, refused, run, folder, tmp_path, bad
):
    for number in range(3):
        save(tmp_path / f"{number}.wav", samples_of(find_data("tones:30").train[number]))
    expected = regard("predict", run, tmp_path, "--chunk", 5).lines
    assert all(expected)
    expected[bad] = ""
    (tmp_path / f"{bad}.wav").write_text("hello")
    whole, parts = regard("predict", run, tmp_path), regard("predict", run, tmp_path, "--chunk", 5)
    assert (whole.code, parts.code) == (0, 0)
    assert whole.lines == parts.lines == expected
    message = "skipped 1 of 3 examples whose recording cannot be read (first: "
    assert message + str(tmp_path / f"{bad}.wav") in parts.err and parts.err == whole.err
    rows = [
        json.loads(line) for line in regard("predict", run, tmp_path, "--chunk", 5, "--json").lines
    ]
    assert [row["text"] for row in rows] == expected
    assert [len(row["parts"]) == 0 for row in rows] == [number == bad for number in range(3)]
    for number in range(3):
        (tmp_path / f"{number}.wav").write_text("hello")
    nothing = refused("predict", run, tmp_path, "--chunk", 5)
    assert nothing == refused("predict", run, tmp_path)
    assert nothing.startswith(
        f"No recording can be read. First: {tmp_path / '0.wav'} is not a recording"
    )


def write_wave(path, samples, *, kind=(1, 16), channels=1, rate=8000, missing=0):
    """Write a WAVE file of any format, optionally without its last bytes."""
    form, bits = kind
    scaled = samples.astype("<f4") if form == 3 else (samples * 2**15).round().astype("<i2")
    data, block = np.repeat(scaled, channels).tobytes(), channels * bits // 8
    head = struct.pack("<HHIIHH", form, channels, rate, rate * block, block, bits)
    sizes = [struct.pack("<I", size) for size in (36 + len(data), 16, len(data))]
    whole = b"RIFF" + sizes[0] + b"WAVEfmt " + sizes[1] + head + b"data" + sizes[2] + data
    path.write_bytes(whole[: len(whole) - missing])
    return path


UNREADABLE = {
    "silent": {"samples": np.zeros(8000)},
    "whisper": {"samples": 1e-5 * np.ones(8000).cumsum() % 3e-5},
    "cut": {"samples": np.ones(8000) / 2, "missing": 900},
    "beheaded": {"samples": np.ones(8000) / 2, "missing": 16_020},
    "endless": {"samples": np.full(8000, np.nan), "kind": (3, 32)},
    "slow": {"samples": np.ones(8000) / 2, "rate": 5},
}
MESSAGES = {
    "silent": "silent.wav holds only silence. Record it again",
    "whisper": "whisper.wav holds only silence",
    "cut": "cut.wav is cut off: its header states 16,000 bytes of samples, but there are 15,100",
    "beheaded": "beheaded.wav is a damaged WAVE file: its format is cut off",
    "endless": "endless.wav contains samples that are infinite or NaN",
    "slow": "slow.wav states 5 samples a second in 1 channels, but must have 1,000 to",
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_recording_is_one_line_of_error(refused, run, tmp_path, name):
    path = write_wave(tmp_path / f"{name}.wav", **UNREADABLE[name])
    assert MESSAGES[name] in refused("predict", run, path)
    assert MESSAGES[name] in refused("predict", run, path, "--chunk", 3)
    assert MESSAGES[name] in refused("show", run, path)


def test_empty_file_is_one_line_of_error(refused, run, tmp_path):
    (tmp_path / "none.wav").touch()
    assert "none.wav is an empty file" in refused("predict", run, tmp_path / "none.wav")


def test_bad_recordings_are_skipped_and_counted(regard, folder, tmp_path):
    rows = [f"{folder}/in/{number}.wav\tlow high\n" for number in range(30)]
    for name, about in UNREADABLE.items():
        rows.append(f"{write_wave(tmp_path / f'{name}.wav', **about)}\tlow high\n")
    (tmp_path / "transcripts.tsv").write_text("".join(rows), encoding="utf-8")
    arguments = ("--recipe", "chan2016-laptop", *TINY_TRANSCRIBER, "--device", "cpu")
    result = regard("train", tmp_path / "transcripts.tsv", *arguments, "--out", tmp_path / "run")
    assert result.code == 0, result.err
    assert "skipped 6 of 36 examples whose recording cannot be read (first: " in result.err


def test_channels_and_floats_do_not_matter(regard, run, folder, tmp_path):
    samples = open_audio(f"{folder}/in/0.wav", max_seconds=9).samples
    files = [
        write_wave(tmp_path / "plain.wav", samples),
        write_wave(tmp_path / "stereo.wav", samples, channels=2),
        write_wave(tmp_path / "float.wav", samples, kind=(3, 32)),
    ]
    assert len({tuple(regard("predict", run, file).lines) for file in files}) == 1


def test_resampling_is_logged(regard, run, folder, tmp_path):
    samples = open_audio(f"{folder}/in/0.wav", max_seconds=9).samples
    path = write_wave(tmp_path / "odd.wav", samples, rate=12_345)
    result = regard("predict", run, path)
    assert result.code == 0 and len(result.lines) == 1
    assert result.err == "recordings of 12,345 samples a second are resampled to 8,000 (`rate`)\n"


def test_chunks_are_refused_with_other_options_and_models(refused, run, tiny_run, folder):
    name = folder / "in/0.wav"
    message = refused("predict", run, name, "--chunk", 3, "--nbest", 2)
    assert "`--chunk` joins the predictions of segments" in message
    message = refused("predict", tiny_run.folder, "--chunk", 3, folder / "transcripts.tsv")
    assert "`--chunk` is for models that transcribe audio" in message


def test_recipe_is_chosen_for_folders_by_label(regard, tmp_path):
    for number, example in enumerate(find_data("tones:single,60").train):
        save(tmp_path / "in" / example.target / f"{number}.wav", samples_of(example))
    result = regard("train", tmp_path / "in", *TINY, "--out", tmp_path / "run", "--device", "cpu")
    assert result.code == 0, result.err
    assert "Recipe: sound-labels (no GPU; sources are recordings" in result.err
    one = next((tmp_path / "in" / "low").iterdir())
    (label,) = regard("predict", tmp_path / "run", one).lines
    assert (tmp_path / "in" / label).is_dir()


def test_recipe_is_chosen_for_a_file_of_transcripts(folder, regard, tmp_path):
    arguments = ("train", folder / "transcripts.tsv", *TINY_TRANSCRIBER, "--out", tmp_path / "run")
    result = regard(*arguments, "--device", "cpu")
    assert result.code == 0, result.err
    assert "Recipe: chan2016-laptop (no GPU; sources are recordings" in result.err
    assert "target tokens: word (only" in result.err


def test_audio_data_sets_are_shown(regard):
    result = regard("data", "show", "tones:20", "--num", 1)
    assert result.lines[1].startswith("tones/0/")


MP3 = b"ID3\4\0\0\0\0\0\x23TSSE" + bytes(100)
M4A = b"\0\0\0\x20ftypM4A \0\0\0\0" + bytes(100)


@pytest.fixture
def without_soundfile(monkeypatch):
    monkeypatch.setattr("regard.data.formats.find_spec", lambda name: None)


@pytest.mark.parametrize(
    ("suffix", "content", "claim"),
    [("mp3", MP3, "pip install 'regard[audio]'"), ("m4a", M4A, "`ffmpeg -i ")],
)
def test_recordings_that_are_not_read_name_package_or_conversion(
    refused, run, tmp_path, without_soundfile, suffix, content, claim
):
    rows = []
    for number in range(12):
        name = f"in/{'ab'[number % 2]}/{number}.{suffix}"
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
        rows.append(f"{name}\t{('zero', 'one')[number % 2]}\n")
    (tmp_path / "m.tsv").write_text("".join(rows))
    for data in ("m.tsv", "in"):
        assert claim in refused("train", tmp_path / data, "--out", tmp_path / "run")
    assert claim in refused("predict", run, tmp_path / "in")
    for command in ("predict", "show"):
        assert claim in refused(command, run, tmp_path / f"in/a/0.{suffix}")
    assert claim in refused("evaluate", run, tmp_path / "m.tsv")
    (tmp_path / "o").write_bytes(content)
    assert "is a recording in a format that is not read" in refused("predict", run, tmp_path / "o")


def test_training_stops_if_many_recordings_need_a_package(refused, folder, without_soundfile):
    rows = (folder / "transcripts.tsv").read_text().splitlines()
    (folder / "0.mp3").write_bytes(MP3)
    mixed = [*rows, *(f"0.mp3#t={n},{n + 1}\tone" for n in range(len(rows)))]
    (folder / "mixed.tsv").write_text("\n".join(mixed) + "\n")
    message = refused("train", folder / "mixed.tsv", "--out", folder / "mixed")
    assert f"{len(rows)} of {2 * len(rows)} recordings" in message
    assert "pip install 'regard[audio]'" in message and "`--on-error skip`" in message


def test_an_image_given_to_a_model_of_recordings_is_refused(refused, run, tmp_path):
    path = tmp_path / "p.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\0")
    for command in ("predict", "show"):
        message = refused(command, run, path)
        assert message == f"{path} is an image (PNG), but must be a recording."


def test_recordings_are_read_by_soundfile_if_it_is_installed(regard, run, folder, tmp_path):
    soundfile = pytest.importorskip("soundfile", reason="soundfile is not installed")
    example = find_data("tones:30").train[0]
    audio = open_audio(example.source, max_seconds=9)
    for name in ("a.flac", "a.ogg", "a.mp3"):
        soundfile.write(tmp_path / name, audio.samples, audio.rate)
    assert len(regard("predict", run, tmp_path).lines) == 3
