import wave

import numpy as np
import pytest
import torch

from regard.core.errors import ConfigError, DataError
from regard.data.audio.decoding import open_audio
from regard.data.audio.field import AudioConfig
from regard.data.audio.segment import Chunk
from regard.data.audio.wav import read_file
from regard.data.datasets.catalog import find_data
from regard.models.build import ModelConfig
from regard.models.decoders import BahdanauDecoderConfig
from regard.models.encoders.pyramidal_lstm import PyramidalLstmEncoderConfig
from regard.runs.prediction.long_audio import Segment, join_segments, transcribe, transcribe_all
from regard.search.settings import SearchConfig
from regard.tasks.generation.recipe import DataConfig, Recipe
from regard.tasks.generation.task import Predictor
from regard.tasks.prediction import Prediction

EXAMPLES = find_data("tones:30").train


@pytest.fixture(scope="module")
def transcriber():
    """A tiny untrained model, whose output depends on every frame."""
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
    strings = [open_audio(example.source, max_seconds=9).samples for example in EXAMPLES[:12]]
    pause = np.zeros(4000, np.float32)
    segments = [part for string in strings for part in (string, pause)]
    return save(tmp_path / "long.wav", np.concatenate(segments))


def test_segments_of_a_long_recording_equal_single_predictions(transcriber, long_wave, tmp_path):
    segments = list(transcribe(transcriber, long_wave, seconds=3))
    assert len(segments) > 8  # more than one batch
    texts = []
    for number, part in enumerate(segments):
        samples = read_file(part.chunk.reference, max_seconds=5).samples
        alone = save(tmp_path / f"{number}.wav", samples)
        texts.append(transcriber.predict([alone])[0][0].text)
    assert [part.prediction.text for part in segments] == texts
    assert join_segments(segments) == " ".join(texts)
    assert len(set(texts)) > 1  # predictions depend on the audio


def test_segments_are_transcribed_lazily(transcriber, long_wave, monkeypatch):
    batch_sizes = []
    predict = transcriber.predict

    def counting(sources, **settings):
        batch_sizes.append(len(sources))
        return predict(sources, **settings)

    monkeypatch.setattr("regard.runs.prediction.long_audio.BATCH_SIZE", 2)
    monkeypatch.setattr(transcriber, "predict", counting)
    segments = transcribe(transcriber, long_wave, seconds=3)
    next(segments)
    assert batch_sizes == [2]
    rest = len(list(segments))
    assert sum(batch_sizes) == rest + 1 and max(batch_sizes) == 2


def segment(text, *, has_overlap=False):
    return Segment(Chunk("a.wav", 0, 1, has_overlap), Prediction(text, 0.0, (), ()))


@pytest.mark.parametrize(
    ("segments", "text"),
    [
        ([segment("a b"), segment("b c")], "a b b c"),
        ([segment("a b"), segment("b c", has_overlap=True)], "a b c"),
        ([segment("a b c"), segment("b c d", has_overlap=True)], "a b c d"),
        ([segment("a b"), segment("c", has_overlap=True)], "a b c"),
        ([segment(""), segment("c", has_overlap=True), segment("")], "c"),
        ([], ""),
    ],
)
def test_words_repeated_in_an_overlap_are_kept_once(segments, text):
    assert join_segments(segments) == text


def test_segment_length_is_limited(transcriber, long_wave):
    with pytest.raises(ConfigError, match=r"`--chunk` must be at most `data.source.max_seconds` "):
        next(transcribe(transcriber, long_wave, seconds=6))
    with pytest.raises(ConfigError, match="`chunk` must be at least 2"):
        next(transcribe(transcriber, long_wave, seconds=1))


def test_models_of_text_are_refused(tiny_run, long_wave):
    with pytest.raises(ConfigError, match="'generation'.*'word'"):
        next(transcribe(tiny_run.predictor, long_wave, seconds=3))


def test_several_recordings_equal_single_transcriptions(transcriber, long_wave, tmp_path):
    short = save(tmp_path / "short.wav", read_file(f"{long_wave}#t=0,4", max_seconds=5).samples)
    silent = save(tmp_path / "silent.wav", np.zeros(8000))
    transcripts = list(transcribe_all(transcriber, [silent, long_wave, silent, short], seconds=3))
    alone = [list(transcribe(transcriber, path, seconds=3)) for path in (long_wave, short)]
    assert transcripts == [[], alone[0], [], alone[1]]


def test_unreadable_recordings_alone_are_an_error(transcriber, tmp_path):
    silent = save(tmp_path / "silent.wav", np.zeros(8000))
    with pytest.raises(DataError, match=r"silent.wav holds only silence"):
        next(transcribe_all(transcriber, [silent], seconds=3))
    with pytest.raises(DataError, match=r"^No recording can be read. First: .*silent.wav holds"):
        next(transcribe_all(transcriber, [silent, silent], seconds=3))
