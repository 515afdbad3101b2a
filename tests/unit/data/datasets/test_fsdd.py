import io
import wave
import zipfile

import numpy as np
import pytest

from regard.core.errors import DataError
from regard.data.audio.decoding import open_sound
from regard.data.datasets.catalog import find_data
from regard.data.datasets.download import local_folder
from regard.data.datasets.fsdd import PARTS, WORDS, _sample, read_digits

SPEAKERS = ("ann", "bob", "eve")


@pytest.fixture
def fsdd(tmp_path, monkeypatch):
    """An archive like the real one: every take is a constant that tells which it is."""
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


def takes_of(examples):
    return [take for one in examples for take in _sample(one.source.removeprefix("fsdd/"))[1]]


def gaps(samples):
    """How long it is quiet between digits, in seconds."""
    places = np.flatnonzero(np.abs(samples) > 0.02)
    steps = np.diff(places)
    return (steps[steps > 1] / 8000).tolist()


def test_a_string_sounds_as_its_words_say(fsdd):
    example = find_data("fsdd:5").train[0]
    samples = open_sound(example.source, max_seconds=60).samples
    loud = np.abs(samples) > 0.02
    begins = np.flatnonzero(loud & ~np.roll(loud, 1))
    heard = [round(samples[place : place + 40].mean() * 2**15 / 1000) - 1 for place in begins]
    assert " ".join(WORDS[digit] for digit in heard) == example.target
    assert (np.diff(begins) >= 40 + 0.03 * 8000).all()


def test_now_and_then_a_pause_is_long(fsdd):
    sounds = [open_sound(one.source, max_seconds=60) for one in find_data("fsdd:100").train]
    pauses = [gap for sound in sounds for gap in gaps(sound.samples)]
    long = [gap for gap in pauses if gap > 0.21]
    assert 0.02 < len(long) / len(pauses) < 0.1
    assert min(pauses) >= 0.029 and 2 < max(pauses) < 3.1


def test_parts_share_no_recording_and_the_test_is_the_official_one(fsdd):
    found = find_data("fsdd:300")
    assert [len(side) for side in (found.train, found.valid, found.test)] == [300, 500, 500]
    for part, side in zip(PARTS, (found.train, found.valid, found.test), strict=True):
        assert {take.index for take in takes_of(side)} <= set(PARTS[part])
        assert {take.speaker for take in takes_of(side)} == set(SPEAKERS)
    assert {take.index for take in takes_of(found.test)} == {0, 1, 2, 3, 4}


def test_a_string_has_one_speaker(fsdd):
    for example in find_data("fsdd:50").train:
        takes = takes_of([example])
        assert {take.speaker for take in takes} == {example.tags[0]}
        assert 3 <= len(takes) <= 7


def test_a_held_out_speaker_is_only_in_the_test(fsdd):
    found = find_data("fsdd:100,speaker=bob")
    assert {take.speaker for take in takes_of(found.test)} == {"bob"}
    assert "bob" not in {take.speaker for take in takes_of([*found.train, *found.valid])}
    digits = find_data("fsdd:digits,speaker=bob")
    assert {example.tags for example in digits.test} == {("bob",)}
    assert [len(side) for side in (digits.train, digits.valid, digits.test)] == [40, 100, 120]


def test_single_digits_are_labelled(fsdd):
    found = find_data("fsdd:digits")
    assert [len(side) for side in (found.train, found.valid, found.test)] == [60, 150, 150]
    assert found.test[0].source == "fsdd/0_ann_0" and found.test[0].target == "zero"
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
def test_what_follows_the_name_is_checked(fsdd, name, message):
    with pytest.raises(DataError, match=message):
        find_data(name)


def test_wrong_references_are_told(fsdd):
    with pytest.raises(DataError, match="must have the form 'fsdd/7_jackson_32' or"):
        read_digits("0/all/3")
    with pytest.raises(DataError, match="7_zoe_0.wav does not exist"):
        read_digits("7_zoe_0")


def test_an_absent_archive_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"read from the folder 'fsdd' in `REGARD_DATA`"):
        find_data("fsdd")


@pytest.mark.skipif(
    not (local_folder("fsdd") / "recordings.zip").is_file(), reason="fsdd is not in REGARD_DATA"
)
def test_the_real_digits_are_all_there():
    found = find_data("fsdd:digits")
    assert [len(side) for side in (found.train, found.valid, found.test)] == [2400, 300, 300]
    seconds = [open_sound(e.source, max_seconds=60).seconds for e in found.test[::10]]
    assert 0.1 < min(seconds) and max(seconds) < 3
