import wave

import numpy as np
import pytest
import torch

from regard.core.errors import ConfigError, DataError
from regard.data.audio.decoding import open_sound
from regard.data.audio.field import AudioConfig
from regard.data.audio.segment import Chunk
from regard.data.audio.wav import read_file
from regard.data.datasets.catalog import find_data
from regard.models.build import ModelConfig
from regard.models.decoders import BahdanauDecoderConfig
from regard.models.encoders.pyramidal_lstm import PyramidalLstmEncoderConfig
from regard.runs.long_audio import Segment, join_segments, transcribe, transcribe_all
from regard.search.settings import SearchConfig
from regard.tasks.generation.recipe import DataConfig, Recipe
from regard.tasks.generation.task import Predictor
from regard.tasks.prediction import Prediction

EXAMPLES = find_data("tones:30").train


@pytest.fixture(scope="module")
def listener():
    """A tiny model that has learned nothing: what it says hangs on every frame."""
    recipe = Recipe(
        data=DataConfig(source=AudioConfig(num_mels=12, max_seconds=5)),
        model=ModelConfig(
            encoder=PyramidalLstmEncoderConfig(dim=6, num_layers=2),
            decoder=BahdanauDecoderConfig(dim=8, embedding_dim=4, attention_dim=5),
        ),
        search=SearchConfig(beams=2, max_ratio=0.05, max_extra=4),
    )
    return Predictor.prepare(recipe, EXAMPLES, device=torch.device("cpu"))


def save(path, samples):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes((samples * 2**15).round().astype("<i2").tobytes())
    return str(path)


@pytest.fixture
def long_wave(tmp_path):
    """Twelve strings of tones, with a pause after each."""
    strings = [open_sound(example.source, max_seconds=9).samples for example in EXAMPLES[:12]]
    pause = np.zeros(4000, np.float32)
    parts = [part for string in strings for part in (string, pause)]
    return save(tmp_path / "long.wav", np.concatenate(parts))


def test_a_long_recording_is_heard_as_its_parts_are_one_by_one(listener, long_wave, tmp_path):
    parts = list(transcribe(listener, long_wave, seconds=3))
    assert len(parts) > 8  # more than are heard at once
    texts = []
    for number, part in enumerate(parts):
        samples = read_file(part.chunk.reference, max_seconds=5).samples
        alone = save(tmp_path / f"{number}.wav", samples)
        texts.append(listener.predict([alone])[0][0].text)
    assert [part.prediction.text for part in parts] == texts
    assert join_segments(parts) == " ".join(texts)
    assert len(set(texts)) > 1  # it does hang on what is heard


def test_parts_come_before_the_recording_is_read_to_its_end(listener, long_wave, monkeypatch):
    asked = []
    predict = listener.predict

    def counting(sources, **settings):
        asked.append(len(sources))
        return predict(sources, **settings)

    monkeypatch.setattr("regard.runs.long_audio.NUM_TOGETHER", 2)
    monkeypatch.setattr(listener, "predict", counting)
    parts = transcribe(listener, long_wave, seconds=3)
    next(parts)
    assert asked == [2]
    rest = len(list(parts))
    assert sum(asked) == rest + 1 and max(asked) == 2


def heard(text, *, has_overlap=False):
    return Segment(Chunk("a.wav", 0, 1, has_overlap), Prediction(text, 0.0, (), ()))


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([heard("a b"), heard("b c")], "a b b c"),
        ([heard("a b"), heard("b c", has_overlap=True)], "a b c"),
        ([heard("a b c"), heard("b c d", has_overlap=True)], "a b c d"),
        ([heard("a b"), heard("c", has_overlap=True)], "a b c"),
        ([heard(""), heard("c", has_overlap=True), heard("")], "c"),
        ([], ""),
    ],
)
def test_what_was_heard_twice_is_written_once(parts, text):
    assert join_segments(parts) == text


def test_parts_must_fit_the_model(listener, long_wave):
    with pytest.raises(ConfigError, match=r"`--chunk` must be at most `data.source.max_seconds` "):
        next(transcribe(listener, long_wave, seconds=6))
    with pytest.raises(ConfigError, match="`chunk` must be at least 2"):
        next(transcribe(listener, long_wave, seconds=1))


def test_models_that_read_text_have_no_parts(tiny_run, long_wave):
    with pytest.raises(ConfigError, match="for the task 'generation' and reads 'word'"):
        next(transcribe(tiny_run.predictor, long_wave, seconds=3))


def test_recordings_together_are_heard_as_each_is_alone(listener, long_wave, tmp_path):
    short = save(tmp_path / "short.wav", read_file(f"{long_wave}#t=0,4", max_seconds=5).samples)
    silent = save(tmp_path / "silent.wav", np.zeros(8000))
    found = list(transcribe_all(listener, [silent, long_wave, silent, short], seconds=3))
    alone = [list(transcribe(listener, path, seconds=3)) for path in (long_wave, short)]
    assert found == [[], alone[0], [], alone[1]]


def test_the_only_recording_must_be_heard(listener, tmp_path):
    silent = save(tmp_path / "silent.wav", np.zeros(8000))
    with pytest.raises(DataError, match=r"silent.wav holds no sound but silence"):
        next(transcribe_all(listener, [silent], seconds=3))
    with pytest.raises(DataError, match=r"^No recording can be read. First: .*silent.wav holds no"):
        next(transcribe_all(listener, [silent, silent], seconds=3))
