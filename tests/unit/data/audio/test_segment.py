import tracemalloc
import wave

import numpy as np
import pytest

from regard.core.errors import DataError
from regard.data.audio.segment import OVERLAP, find_pause, split_at_pauses
from regard.data.audio.wav import read_file

RATE = 8000


def noise(seconds, level=0.3):
    generator = np.random.default_rng(round(1000 * seconds))
    return level * generator.standard_normal(round(seconds * RATE)).clip(-3, 3)


def silence(seconds):
    return np.zeros(round(seconds * RATE))


@pytest.fixture
def put(tmp_path):
    def put(*parts):
        path = tmp_path / "long.wav"
        with wave.open(str(path), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(RATE)
            file.writeframes((np.concatenate(parts) * 2**15).astype("<i2").tobytes())
        return str(path)

    return put


def test_the_longest_pause_is_found_in_its_middle():
    samples = np.concatenate([noise(0.3), silence(0.05), noise(0.4), silence(0.2), noise(0.2)])
    position, is_pause = find_pause(samples.astype(np.float32), RATE)
    assert is_pause and abs(position / RATE - 0.85) < 0.011


def test_quiet_noise_is_a_pause_and_a_very_short_silence_is_not():
    samples = np.concatenate([noise(0.3), noise(0.1, level=0.005), noise(0.4)])
    assert find_pause(samples, RATE)[1]
    position, is_pause = find_pause(np.concatenate([noise(0.3), silence(0.02), noise(0.4)]), RATE)
    assert not is_pause and abs(position / RATE - 0.31) < 0.02


def test_chunks_are_consecutive_and_split_at_pauses(put):
    spoken = [noise(1.2 + 0.1 * (number % 3)) for number in range(9)]
    path = put(*[part for one in spoken for part in (one, silence(0.4))])
    chunks = list(split_at_pauses(path, seconds=4))
    assert chunks[0].start == 0 and len(chunks) > 3
    assert all(chunk.end - chunk.start <= 4 for chunk in chunks)
    parts = [read_file(chunk.reference, max_seconds=4).samples for chunk in chunks]
    assert np.array_equal(np.concatenate(parts), read_file(path, max_seconds=60).samples)
    for before, after in zip(parts, parts[1:], strict=False):
        assert not before[-800:].any() and not after[:800].any()
    assert not any(chunk.has_overlap for chunk in chunks)


def test_chunks_overlap_where_there_is_no_pause(put):
    chunks = list(split_at_pauses(put(noise(9)), seconds=4))
    assert [chunk.has_overlap for chunk in chunks] == [False] + [True] * (len(chunks) - 1)
    for before, after in zip(chunks, chunks[1:], strict=False):
        assert before.end - after.start == pytest.approx(OVERLAP)
    assert chunks[-1].end == 9


def test_long_silence_is_skipped(put):
    chunks = list(split_at_pauses(put(noise(1), silence(20), noise(1)), seconds=4))
    assert [chunk.start for chunk in chunks][0] == 0 and chunks[-1].end == 22
    assert sum(chunk.end - chunk.start for chunk in chunks) < 10
    with pytest.raises(DataError, match=r"long.wav holds only silence"):
        list(split_at_pauses(put(silence(9)), seconds=4))


def test_long_quiet_noise_is_skipped(put):
    spoken, quiet = noise(2.2), noise(6, level=0.001)
    chunks = list(split_at_pauses(put(spoken, quiet, spoken, quiet, quiet, spoken), seconds=4))
    assert not any(chunk.has_overlap for chunk in chunks)
    spoken_spans = [(begin, begin + 2.2) for begin in (0, 8.2, 22.4)]
    for begin, end in spoken_spans:
        assert any(chunk.start <= begin and end <= chunk.end for chunk in chunks)
    for chunk in chunks:
        assert any(chunk.start < end and begin < chunk.end for begin, end in spoken_spans)


def test_quieter_speech_later_is_kept(put):
    path = put(noise(4), silence(0.5), noise(4, level=0.02), silence(0.5))
    chunks = list(split_at_pauses(path, seconds=3))
    assert sum(chunk.end - chunk.start for chunk in chunks) > 8.5


def test_a_short_recording_is_one_chunk(put):
    (chunk,) = split_at_pauses(put(noise(1.5)), seconds=4)
    assert (chunk.start, chunk.end, chunk.has_overlap) == (0, 1.5, False)


def test_memory_does_not_grow_with_the_recording(put):
    def peak(seconds):
        path = put(*[noise(0.7), silence(0.3)] * seconds)
        tracemalloc.start()
        num = sum(1 for _ in split_at_pauses(path, seconds=4))
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return num, found

    peak(10)  # exclude late imports
    (few, small), (many, large) = peak(20), peak(200)
    assert many > 9 * few and large < 1.2 * small
