import io
import wave
import zipfile

import numpy as np
import pytest

from regard.core.errors import DataError
from regard.data.audio.decoding import open_audio
from regard.data.datasets.catalog import find_data
from regard.data.datasets.download import local_folder
from regard.data.datasets.fsdd import PARTS, WORDS, _sample, read_digits

SPEAKERS = ("ann", "bob", "eve")


@pytest.fixture
def fsdd(tmp_path, monkeypatch):
    """Archive like the real one; the samples of a clip are a constant that encodes its digit."""
    (tmp_path / "fsdd").mkdir()
    with zipfile.ZipFile(tmp_path / "fsdd" / "recordings.zip", "w") as archive:
        for digit in range(10):
            for speaker in SPEAKERS:
                for index in range(12):
                    data = io.BytesIO()
                    with wave.open(data, "wb") as file:
                        file.setnchannels(1)
                        file.setsampwidth(2)
                        file.setframerate(8000)
                        file.writeframes(np.full(40, 1000 * (digit + 1), "<i2").tobytes())
                    archive.writestr(f"{digit}_{speaker}_{index}.wav", data.getvalue())
        archive.writestr("read.me", "no recording")
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))


def clips_of(examples):
    return [
        clip for example in examples for clip in _sample(example.source.removeprefix("fsdd/"))[1]
    ]


def pauses_of(samples):
    """Return the pauses between digits in seconds."""
    loud = np.flatnonzero(np.abs(samples) > 0.02)
    steps = np.diff(loud)
    return (steps[steps > 1] / 8000).tolist()


def test_recording_contains_the_digits_of_its_target(fsdd):
    example = find_data("fsdd:5").train[0]
    samples = open_audio(example.source, max_seconds=60).samples
    loud = np.abs(samples) > 0.02
    starts = np.flatnonzero(loud & ~np.roll(loud, 1))
    digits = [round(samples[start : start + 40].mean() * 2**15 / 1000) - 1 for start in starts]
    assert " ".join(WORDS[digit] for digit in digits) == example.target
    assert (np.diff(starts) >= 40 + 0.03 * 8000).all()


def test_few_pauses_are_long(fsdd):
    examples = find_data("fsdd:100").train
    recordings = [open_audio(example.source, max_seconds=60) for example in examples]
    pauses = [pause for recording in recordings for pause in pauses_of(recording.samples)]
    long_pauses = [pause for pause in pauses if pause > 0.21]
    assert 0.02 < len(long_pauses) / len(pauses) < 0.1
    assert min(pauses) >= 0.029 and 2 < max(pauses) < 3.1


def test_splits_share_no_recording_and_test_is_official(fsdd):
    splits = find_data("fsdd:300")
    assert [len(part) for part in (splits.train, splits.valid, splits.test)] == [300, 500, 500]
    for name, part in zip(PARTS, (splits.train, splits.valid, splits.test), strict=True):
        assert {clip.index for clip in clips_of(part)} <= set(PARTS[name])
        assert {clip.speaker for clip in clips_of(part)} == set(SPEAKERS)
    assert {clip.index for clip in clips_of(splits.test)} == {0, 1, 2, 3, 4}


def test_each_string_has_one_speaker(fsdd):
    for example in find_data("fsdd:50").train:
        clips = clips_of([example])
        assert {clip.speaker for clip in clips} == {example.tags[0]}
        assert 3 <= len(clips) <= 7


def test_held_out_speaker_is_only_in_the_test_split(fsdd):
    splits = find_data("fsdd:100,speaker=bob")
    assert {clip.speaker for clip in clips_of(splits.test)} == {"bob"}
    assert "bob" not in {clip.speaker for clip in clips_of([*splits.train, *splits.valid])}
    digits = find_data("fsdd:digits,speaker=bob")
    assert {example.tags for example in digits.test} == {("bob",)}
    assert [len(part) for part in (digits.train, digits.valid, digits.test)] == [40, 100, 120]


def test_single_digits_have_labels(fsdd):
    splits = find_data("fsdd:digits")
    assert [len(part) for part in (splits.train, splits.valid, splits.test)] == [60, 150, 150]
    assert splits.test[0].source == "fsdd/0_ann_0" and splits.test[0].target == "zero"
    assert len(read_digits("0_ann_0").samples) == 40


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fsdd:x", "The argument of 'fsdd:' must be 'digits', a number .* but is 'x'"),
        (
            "fsdd:speaker=bobb",
            "must be one of 'ann', 'bob', 'eve', but is 'bobb'. Did you mean 'bob'",
        ),
    ],
)
def test_invalid_argument_raises(fsdd, name, message):
    with pytest.raises(DataError, match=message):
        find_data(name)


def test_invalid_references_raise(fsdd):
    with pytest.raises(DataError, match="must have the form 'fsdd/7_jackson_32' or"):
        read_digits("0/all/3")
    with pytest.raises(DataError, match="7_zoe_0.wav does not exist"):
        read_digits("7_zoe_0")


def test_missing_archive_raises(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"`REGARD_DATA` .* contains fsdd/recordings.zip"):
        find_data("fsdd")


@pytest.mark.skipif(
    not (local_folder("fsdd") / "recordings.zip").is_file(), reason="fsdd is not in REGARD_DATA"
)
def test_real_digits_have_official_sizes():
    splits = find_data("fsdd:digits")
    assert [len(part) for part in (splits.train, splits.valid, splits.test)] == [2400, 300, 300]
    seconds = [open_audio(e.source, max_seconds=60).seconds for e in splits.test[::10]]
    assert 0.1 < min(seconds) and max(seconds) < 3
