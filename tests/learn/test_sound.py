"""What is heard: the words of a string, and of a recording that is longer than any of them."""

import wave

import numpy as np
import pytest

from regard.data.audio.decoding import open_sound
from regard.data.datasets.catalog import find_data
from regard.metrics.text.error_rates import align
from regard.runs.folder import load
from regard.runs.long_audio import join_segments, transcribe
from regard.runs.request import Request
from regard.runs.train import train

pytestmark = pytest.mark.learn

# CTC alone learns tones in the fewest steps.
BY_CTC = (
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
def listener(tmp_path_factory):
    request = Request(
        data=("tones:1500",),
        recipe="chan2016-laptop",
        settings=BY_CTC,
        out=tmp_path_factory.mktemp("learn") / "run",
        device="cpu",
    )
    train(request)
    return load(str(request.out), "cpu")


def test_tones_are_told_apart(listener):
    test = find_data("tones:1500").test
    assert listener.evaluate(test).results["wer"].value <= 5


def test_a_long_recording_is_heard_as_its_strings_are_one_by_one(listener, tmp_path):
    examples = find_data("tones:1500").test[:30]
    generator = np.random.default_rng(0)
    parts = []
    for example in examples:
        pause = 0.003 * generator.standard_normal(4_800)
        parts += [open_sound(example.source, max_seconds=9).samples, pause]
    path = tmp_path / "long.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes((np.concatenate(parts) * 2**15).round().astype("<i2").tobytes())
    alone = [best[0].text for best in listener.predict([e.source for e in examples])]
    together = join_segments(transcribe(listener, str(path), seconds=4)).split()
    one_by_one = " ".join(alone).split()
    differences = sum(right != written for right, written in align(one_by_one, together))
    assert len(one_by_one) > 100
    assert differences <= 0.03 * len(one_by_one)
