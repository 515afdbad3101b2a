import numpy as np
import pytest

from regard.core.errors import DataError
from regard.data.audio.decoding import open_audio
from regard.data.datasets.catalog import find_data
from regard.data.datasets.synthetic.tones import RATE, TONES, synthesize_tones


def test_recording_is_determined_by_seed_and_number():
    first, again = synthesize_tones("0/5"), synthesize_tones("0/5")
    assert np.array_equal(first.samples, again.samples) and first.rate == RATE
    assert not np.array_equal(first.samples[:100], synthesize_tones("1/5").samples[:100])
    assert np.abs(first.samples).max() < 1


def test_targets_are_names_of_tones_and_splits_share_no_sequence():
    splits = find_data("tones:200", seed=1)
    parts = splits.train, splits.valid, splits.test
    assert [len(part) for part in parts] == [200, 300, 300]
    texts = [{example.target for example in part} for part in parts]
    assert not (texts[0] & texts[1] or texts[0] & texts[2] or texts[1] & texts[2])
    words = {word for example in splits.train for word in example.target.split()}
    assert words == set(TONES)
    assert {len(example.target.split()) for example in splits.train} == {3, 4, 5, 6, 7}


def test_smaller_data_sets_are_subsets_of_larger_ones():
    few, more = find_data("tones:20"), find_data("tones:40")
    assert more.train[:20] == few.train and more.test == few.test


def test_single_tones_have_one_label():
    splits = find_data("tones:single,50")
    assert {example.target for example in splits.train} <= set(TONES)
    assert 0.1 < open_audio(splits.train[0].source, max_seconds=2).seconds < 1.6


def test_tones_have_the_frequency_of_their_name():
    """The frequency with the largest magnitude is close to the nominal one."""
    splits = find_data("tones:single,100")
    expected = {"low": 300, "middle": 900, "high": 2500}
    checked = 0
    for example in splits.train:
        if frequency := expected.get(example.target):
            samples = open_audio(example.source, max_seconds=1).samples
            peak = np.abs(np.fft.rfft(samples)).argmax() * RATE / len(samples)
            assert 0.85 * frequency < peak < 1.15 * frequency
            checked += 1
    assert checked > 20


@pytest.mark.parametrize("argument", ["x", ",5", "single,", "0", "5,single"])
def test_invalid_argument_raises(argument):
    with pytest.raises(DataError, match=f"The argument of 'tones:' must be .*but is '{argument}'"):
        find_data(f"tones:{argument}")


def test_invalid_reference_raises():
    with pytest.raises(
        DataError, match="must have the form 'tones/SEED/NUMBER', but is 'tones/x/3'"
    ):
        open_audio("tones/x/3", max_seconds=1)
