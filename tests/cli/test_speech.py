"""Commands on a speech recogniser: predictions and word alignments."""

import wave
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from regard.data.audio.files import NUMBERED_RECORDINGS
from regard.data.datasets.catalog import find_data
from regard.runs.folder import load
from regard.runs.report import write_report

SETTINGS = (
    "data.source.num_mels=12",
    "model.encoder.dim=8",
    "model.decoder.dim=8",
    "model.decoder.attention_dim=8",
    "train.max_steps=2",
    "train.schedule.warmup_steps=0",
    "validation.metric=loss",
    "search.max_ratio=0.0",
    "search.max_extra=4",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("speech")


@pytest.fixture(autouse=True)
def own_cache(folder, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(folder / "cache"))


@pytest.fixture
def run(regard, folder):
    """A model after two steps, trained at its first use on transcripts in a file."""
    if not (folder / "run" / "config.json").exists():
        lines = [f"{one.source}\t{one.target}\n" for one in find_data("tones:20").train]
        for name, part in (("train", lines[:12]), ("held", lines[12:])):
            (folder / f"{name}.tsv").write_text("".join(part), encoding="utf-8")
        held = folder / "held.tsv"
        result = regard(
            "train", folder / "train.tsv", "--valid", held, "--test", held,
            "--recipe", "chan2016-laptop", "--out", folder / "run", "--device", "cpu", *SETTINGS,
        )  # fmt: skip
        assert result.code == 0, result.err
    return folder / "run"


def write_wav(path):
    audio = NUMBERED_RECORDINGS["tones"]("0/5")
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(audio.rate)
        file.writeframes((audio.samples * 32767).astype(np.int16).tobytes())
    return path


def test_alignment_of_a_recording_is_shown_in_the_terminal(regard, run, tmp_path):
    result = regard("show", run, write_wav(tmp_path / "one.wav"), "--target", "low high")
    assert result.code == 0, result.err
    assert result.lines[0] == "low high"
    text = "\n".join(result.lines)
    assert "attention" in text and "CTC alignment" in text
    assert result.lines[-2].endswith(" s")
    assert result.lines[-1].startswith("Probabilities: low ")


def test_alignment_of_a_recording_is_plotted_to_a_file(regard, run, tmp_path):
    wav = write_wav(tmp_path / "one.wav")
    for name in ("plot.png", "plot.svg"):
        result = regard("show", run, wav, "--target", "low high low", "--out", tmp_path / name)
        assert result.lines == ["low high low", str(tmp_path / name)]
    with Image.open(tmp_path / "plot.png") as image:
        assert min(image.size) > 300
    texts = [each.text for each in ElementTree.parse(tmp_path / "plot.svg").iter() if each.text]
    assert texts.count("high") == 4  # above the audio and beside the weights, attention and CTC


def test_ctc_weight_is_a_search_setting(regard, run):
    plain = regard("predict", run, "tones/0/5", "search.ctc_weight=0")
    alone = regard("predict", run, "tones/0/5", "search.ctc_weight=1", "--beam", "1")
    assert plain.code == alone.code == 0, plain.err + alone.err
    assert len(plain.lines) == len(alone.lines) == 1


def test_report_plots_recordings(run):
    predictor = load(run, "cpu")
    held, config = str(run.parent / "held.tsv"), predictor.recipe.data
    examples = predictor.read_split((held,), "test", config=config)
    evaluation = predictor.evaluate(examples)
    path = write_report(run, predictor, evaluation, examples=examples, num_maps=1)
    page = path.read_text(encoding="utf-8")
    assert "test recordings" in page
    assert "frequencies of the recording over time" in page
