import numpy as np
import pytest

from regard.core.errors import DataError
from regard.data.audio.decoding import open_sound
from regard.data.datasets.catalog import find_data
from regard.data.datasets.synthetic.tones import RATE, TONES, synthesize_tones


def test_a_recording_hangs_on_seed_and_number_alone():
    first, again = synthesize_tones("0/5"), synthesize_tones("0/5")
    assert np.array_equal(first.samples, again.samples) and first.rate == RATE
    assert not np.array_equal(first.samples[:100], synthesize_tones("1/5").samples[:100])
    assert np.abs(first.samples).max() < 1


def test_strings_are_told_in_their_words_and_no_string_is_shared():
    found = find_data("tones:200", seed=1)
    sides = found.train, found.valid, found.test
    assert [len(side) for side in sides] == [200, 300, 300]
    texts = [{example.target for example in side} for side in sides]
    assert not (texts[0] & texts[1] or texts[0] & texts[2] or texts[1] & texts[2])
    words = {word for example in found.train for word in example.target.split()}
    assert words == set(TONES)
    assert {len(example.target.split()) for example in found.train} == {3, 4, 5, 6, 7}


def test_fewer_are_among_the_more():
    few, more = find_data("tones:20"), find_data("tones:40")
    assert more.train[:20] == few.train and more.test == few.test


def test_single_tones_have_one_name():
    found = find_data("tones:single,50")
    assert {example.target for example in found.train} <= set(TONES)
    assert 0.1 < open_sound(found.train[0].source, max_seconds=2).seconds < 1.6


def test_tones_are_where_their_names_say():
    """The loudest frequency of a tone tells low from middle from high."""
    found = find_data("tones:single,100")
    expected = {"low": 300, "middle": 900, "high": 2500}
    checked = 0
    for example in found.train:
        if hertz := expected.get(example.target):
            samples = open_sound(example.source, max_seconds=1).samples
            loudest = np.abs(np.fft.rfft(samples)).argmax() * RATE / len(samples)
            assert 0.85 * hertz < loudest < 1.15 * hertz
            checked += 1
    assert checked > 20


@pytest.mark.parametrize("argument", ["x", ",5", "single,", "0", "5,single"])
def test_what_follows_the_name_is_checked(argument):
    with pytest.raises(DataError, match=f"The argument of 'tones:' must be .*but is '{argument}'"):
        find_data(f"tones:{argument}")


def test_a_wrong_reference_is_told():
    with pytest.raises(
        DataError, match="must have the form 'tones/SEED/NUMBER', but is 'tones/x/3'"
    ):
        open_sound("tones/x/3", max_seconds=1)
