import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

from regard.core.files import read_json, write_json
from regard.runs import report
from regard.runs import train as training
from regard.runs.folder import METRICS, REPORT, TRAINING_LOG, read_test_set
from regard.runs.report import read_evaluation, write_report
from regard.runs.saved.config import CONFIG
from regard.runs.train import train
from regard.tasks.generation.task import Predictor
from regard.tasks.prediction import cell_names

NAMESPACES = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
"""XML namespaces, which are not fetched."""


class Page(HTMLParser):
    """Text, headings, and tags that make a browser fetch something."""

    def __init__(self, text):
        super().__init__()
        self.fetched = []
        self.headings = []
        self.text = ""
        self._tag = ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self._tag = tag
        for name, value in attributes:
            if name in ("src", "href", "xlink:href", "data") and not str(value).startswith("#"):
                self.fetched.append((tag, value))
        if tag in ("script", "link", "iframe", "img"):
            self.fetched.append((tag, ""))

    def handle_data(self, data):
        self.text += data
        if self._tag == "h2":
            self.headings.append(data.strip())


def write_page(trained, folder, evaluation):
    for name in (METRICS, TRAINING_LOG):
        shutil.copy(trained.folder / name, folder)
    config = read_json(trained.folder / CONFIG)
    write_json(folder / CONFIG, {**config, "about": {"data": ["A <small> run"]}})
    examples = read_test_set(trained.folder)
    path = write_report(folder, trained.predictor, evaluation, examples=examples)
    assert path == folder / REPORT
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def text(tiny_run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    outputs = ["<b>d & e</b>", *tiny_run.evaluation.outputs[1:]]
    return write_page(tiny_run, folder, replace(tiny_run.evaluation, outputs=outputs))


def test_page_has_no_external_links(text):
    assert set(re.findall(r"https?://[^\s\"'<>)]+", text)) <= NAMESPACES


def test_page_fetches_nothing(text):
    assert Page(text).fetched == []


def test_samples_are_shown_escaped(text):
    assert "&lt;b&gt;d &amp; e&lt;/b&gt;" in text
    assert "<b>d & e</b>" not in text
    assert "A &lt;small&gt; run" in text


def test_page_has_every_section(text):
    headings = [heading for heading in Page(text).headings if heading]
    assert headings == [
        "Training curves",
        "Samples",
        "Attention",
        "BLEU by source length",
        "BLEU by phenomenon",
        "Sentence embeddings",
        "Linear probes by layer",
        "Provenance",
    ]


def test_signature_of_every_score_is_given(text, tiny_run):
    page = Page(text).text
    for result in tiny_run.evaluation.results.values():
        assert result.signature in page


def test_model_without_attention_has_no_attention_section(tiny_run_without_attention, tmp_path):
    trained = tiny_run_without_attention
    text = write_page(trained, tmp_path, trained.evaluation)
    assert "Attention" not in Page(text).headings


def test_page_is_written_for_empty_outputs(tiny_run, tmp_path):
    empty = replace(tiny_run.evaluation, outputs=[""] * len(tiny_run.evaluation.outputs))
    assert "Attention" not in Page(write_page(tiny_run, tmp_path, empty)).headings


def test_training_writes_the_report(reverse_files, with_reports, tmp_path):
    trained = train(reverse_files.request(tmp_path / "run", "train.max_steps=1"))
    assert trained.report == tmp_path / "run" / REPORT
    assert trained.report.exists()


def test_failed_report_is_a_warning(reverse_files, tmp_path, monkeypatch, caplog):
    def fail(*args, **options):
        raise ZeroDivisionError("nothing to plot")

    monkeypatch.setattr(training, "write_report", fail)
    trained = train(reverse_files.request(tmp_path / "run", "train.max_steps=1"))
    assert trained.report is None
    assert trained.evaluation is not None
    (message,) = [text for text in caplog.messages if "report" in text]
    assert "ZeroDivisionError: nothing to plot" in message
    assert f"regard report {tmp_path / 'run'}" in message


def test_saved_evaluation_is_read_back(tiny_run):
    evaluation, examples = read_evaluation(tiny_run.folder, tiny_run.predictor)
    assert evaluation.to_dict()["scores"] == tiny_run.evaluation.to_dict()["scores"]
    assert evaluation.to_dict()["by_tag"] == tiny_run.evaluation.to_dict()["by_tag"]
    assert evaluation.results == tiny_run.evaluation.results
    assert evaluation.outputs == tiny_run.evaluation.outputs
    assert evaluation.sources == [example.source for example in examples]


class TestImages:
    """Report of a model with image sources: a grid of two rows and three columns."""

    IMAGE = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)

    @pytest.fixture
    def page(self, tiny_run, tmp_path, monkeypatch):
        attend = Predictor.attend

        def attend_image(predictor, examples):
            return [
                replace(
                    attention,
                    source=cell_names((2, 3)),
                    weights=torch.rand(1, 2, len(attention.target), 6),
                    grid=(2, 3),
                    image=self.IMAGE,
                )
                for attention in attend(predictor, examples)
            ]

        monkeypatch.setattr(Predictor, "attend", attend_image)
        outputs = ["", "<b>two", *tiny_run.evaluation.outputs[2:]]
        evaluation = replace(tiny_run.evaluation, outputs=outputs)
        return write_page(tiny_run, tmp_path, evaluation)

    def test_images_are_embedded_in_the_page(self, page):
        fetched = [address for _, address in Page(page).fetched]
        assert fetched and all(address.startswith("data:image/png") for address in fetched)

    def test_samples_show_output_and_reference(self, page, tiny_run):
        samples = page.partition(">Samples<")[2].partition(">Attention<")[0]
        assert "with a prediction, not selected" in samples
        assert "&lt;b&gt;two" in samples
        assert f"reference: {tiny_run.evaluation.references[1]}" in samples
        assert "<table" not in samples

    def test_every_output_token_has_an_image(self, page, tiny_run):
        attention = page.partition(">Attention<")[2].partition("</section>")[0]
        assert "Attention weights over the image" in attention
        counts = [part.count("<image ") for part in attention.split("<figure>")[1:]]
        notes = [len(re.findall(r">max 0\.\d\d<", part)) for part in attention.split("<figure>")]
        assert len(counts) == 4
        assert counts == [number + 1 for number in notes[1:]]
        assert min(notes[1:]) > 0


def test_title_does_not_repeat_a_name(tiny_folder):
    config = read_json(tiny_folder / CONFIG)
    for data, title in ((["run"], "run"), (["a.src", "a.trg"], "run: a.src a.trg")):
        write_json(tiny_folder / CONFIG, {**config, "about": {"data": data}})
        assert report._title(tiny_folder) == title
