"""Transcription of strings of tones and of a long recording."""

import wave

import numpy as np
import pytest

from regard.data.audio.decoding import open_audio
from regard.data.datasets.catalog import find_data
from regard.metrics.text.error_rates import align
from regard.runs.folder import load
from regard.runs.prediction.long_audio import join_segments, transcribe
from regard.runs.request import Request
from regard.runs.train import train

pytestmark = pytest.mark.learn

# CTC alone needs the fewest steps.
CTC_ONLY = (
    "data.batch.max_tokens=1600",
    "data.batch.max_length=400",
    "data.source.augmentation.time_masks=0",
    "model.encoder.dim=48",
    "model.ctc.weight=1.0",
    "search.ctc_weight=1.0",
    "search.beams=1",
    "train.max_epochs=4",
)


@pytest.fixture(scope="module")
def transcriber(tmp_path_factory):
    request = Request(
        data=("tones:1500",),
        recipe="chan2016-laptop",
        settings=CTC_ONLY,
        out=tmp_path_factory.mktemp("learn") / "run",
        device="cpu",
    )
    train(request)
    return load(str(request.out), "cpu")


def test_tones_are_transcribed(transcriber):
    test = find_data("tones:1500").test
    assert transcriber.evaluate(test).results["wer"].value <= 5


def test_long_recording_is_transcribed_like_its_parts(transcriber, tmp_path):
    examples = find_data("tones:1500").test[:30]
    generator = np.random.default_rng(0)
    parts = []
    for example in examples:
        pause = 0.003 * generator.standard_normal(4_800)
        parts += [open_audio(example.source, max_seconds=9).samples, pause]
    path = tmp_path / "long.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes((np.concatenate(parts) * 2**15).round().astype("<i2").tobytes())
    separate = [best[0].text for best in transcriber.predict([e.source for e in examples])]
    together = join_segments(transcribe(transcriber, str(path), seconds=4)).split()
    expected = " ".join(separate).split()
    differences = sum(one != other for one, other in align(expected, together))
    assert len(expected) > 100
    assert differences <= 0.03 * len(expected)
