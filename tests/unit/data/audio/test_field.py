import wave

import numpy as np
import pytest
import torch

from regard.core.errors import ConfigError, DataError
from regard.core.specs import AudioSpec
from regard.data.audio.field import AudioConfig, AudioField
from regard.data.audio.specaugment import SpecAugmentConfig
from regard.data.decoding import keep_readable
from regard.data.example import Example

TONES = [f"tone/0/{number}" for number in range(12)]


def field_of(**settings):
    return AudioField.fit(AudioConfig(num_mels=10, **settings), TONES)


@pytest.fixture
def put(tmp_path):
    """Function that writes a recording of noise."""

    def put(name, num=2_000, loudest=9_000):
        path = tmp_path / name
        with wave.open(str(path), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(8000)
            generator = np.random.default_rng(num)
            samples = generator.integers(-loudest, loudest, num, endpoint=True)
            file.writeframes(samples.astype("<i2").tobytes())
        return str(path)

    return put


def test_items_are_frames_and_their_length_is_the_number_of_frames():
    field = field_of()
    items = field.read_all([*TONES, TONES[0]])
    assert field.spec == AudioSpec(10)
    assert all(item.dtype == np.float32 and item.shape == (len(item), 10) for item in items)
    assert len({len(item) for item in items}) > 3
    assert np.shares_memory(items[0], items[-1])


def test_finished_frames_are_standardised():
    field = field_of()
    values, mask = field.stack(field.read_all(TONES))
    frames = field.finish(values, is_training=False)[mask]
    assert torch.allclose(frames.mean(0), torch.zeros(10), atol=1e-4)
    assert torch.allclose(frames.std(0, correction=0), torch.ones(10), atol=1e-4)


def test_batched_equals_single_and_padding_is_zero():
    field = field_of()
    items = field.read_all(TONES)
    values, mask = field.stack(items)
    together = field.finish(values, is_training=False)
    assert mask.sum(1).tolist() == [len(item) for item in items]
    assert not together[~mask].any()
    for row, item in enumerate(items):
        alone = field.finish(field.stack([item])[0], is_training=False)
        assert torch.equal(together[row, : len(item)], alone[0])


def test_only_training_masks():
    field = field_of(augmentation=SpecAugmentConfig(time_masks=1, mel_masks=1, mel_width=3))
    values, mask = field.stack(field.read_all(TONES))
    plain = field.finish(values, is_training=False)
    assert torch.equal(plain, field_of().finish(values, is_training=True))
    torch.manual_seed(0)
    first = field.finish(values, is_training=True)
    torch.manual_seed(0)
    assert torch.equal(first, field.finish(values, is_training=True))
    changed = first != plain
    assert changed.any() and not first[changed].any()


def test_saved_field_is_the_same(tmp_path):
    field = field_of(augmentation=SpecAugmentConfig(time_masks=2))
    field.save(tmp_path, "source")
    loaded = AudioField.load(tmp_path)
    assert (loaded.config, loaded.mean, loaded.std) == (field.config, field.mean, field.std)


def test_a_recording_is_shortened_to_its_first_frames():
    field = field_of()
    item = field.read_all(TONES[:1])[0]
    assert np.array_equal(field.shorten(item, 3), item[:3])


def test_a_constant_recording_is_standardised_without_nan(put, tmp_path):
    path = put("tone.wav", num=0)
    with wave.open(path, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        # Every frame starts at the same phase of the tone, and the last frame is full.
        file.writeframes(np.tile([3000] * 4 + [-3000] * 4, 255).astype("<i2").tobytes())
    field = AudioField.fit(AudioConfig(), [path])
    values, _ = field.stack(field.read_all([path]))
    assert torch.isfinite(field.finish(values, is_training=True)).all()
    assert set(field.std) == {0.1}


def test_bad_recording_is_named(put, tmp_path):
    with pytest.raises(DataError, match=r"none.wav does not exist"):
        field_of().read_all([put("a.wav"), str(tmp_path / "none.wav")])
    with pytest.raises(DataError, match=r"a.wav holds no audio"):
        field_of().read_all([put("a.wav", num=0)])
    with pytest.raises(DataError, match=r"a.wav holds only silence. Record it again"):
        field_of().read_all([put("a.wav", loudest=1)])
    with pytest.raises(DataError, match="There is no recording to learn from"):
        AudioField.fit(AudioConfig(), [])


def test_examples_with_bad_recordings_are_dropped_and_counted_in_one_line(put, tmp_path, caplog):
    (tmp_path / "bad.wav").write_bytes(b"RIFF")
    names = [put("a.wav"), str(tmp_path / "bad.wav"), put("long.wav", 16_001), TONES[0]]
    examples = [Example(name, "x") for name in names]
    assert keep_readable(examples, AudioConfig(max_seconds=2).decoder) == [
        examples[0],
        examples[-1],
    ]
    (record,) = caplog.records
    assert "skipped 2 of 4 examples whose recording cannot be read (first: " in record.message
    with pytest.raises(
        DataError, match=r"No recording can be read. First: .*bad.wav is not a recording"
    ):
        keep_readable(examples[1:2], AudioConfig().decoder)


def test_many_files_are_read_once_and_again_when_they_change(put, tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    paths = [put(f"{number}.wav", 300 + number) for number in range(70)]
    (tmp_path / "bad.wav").write_bytes(b"RIFF")
    field = field_of()
    first = field.read_all(paths)
    examples = [Example(path) for path in (*paths, str(tmp_path / "bad.wav"))]
    assert len(keep_readable(examples, field.config.decoder)) == 70

    def refuse(*args, **settings):
        raise AssertionError("read again")

    with monkeypatch.context() as patch:
        patch.setattr("regard.data.audio.decoding.log_mel", refuse)
        again = field.read_all(paths)
        assert all(np.array_equal(*pair) for pair in zip(first, again, strict=True))
        with pytest.raises(AssertionError, match="read again"):
            AudioField.fit(AudioConfig(num_mels=11), paths)
    put("3.wav", 900)
    assert len(field.read_all(paths)[3]) > len(first[3])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rate": 0}, "`rate` must be"),
        ({"num_mels": 0}, "`num_mels` must be between 1 and 512"),
        ({"num_mels": 500}, "`num_mels` must leave a frequency"),
        ({"hop_ms": 30.0}, "`hop_ms` must be"),
        ({"window_ms": 0.0}, "`window_ms` must be"),
        ({"max_seconds": 0.0}, "`max_seconds` must be"),
        (
            {"augmentation": SpecAugmentConfig(mel_masks=1, mel_width=40)},
            r"`augmentation.mel_width` must be smaller than `num_mels` \(40\)",
        ),
    ],
)
def test_settings_have_limits(settings, message):
    with pytest.raises(ConfigError, match=message):
        AudioConfig(**settings)


def test_statistics_must_match_the_number_of_mel_bins():
    with pytest.raises(ConfigError, match=r"must have `num_mels` \(40\) values each"):
        AudioField(AudioConfig(), (0.5,), (1.0,))
