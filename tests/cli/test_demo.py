import re
from dataclasses import replace

import pytest

from regard.data.datasets.catalog import find_data
from regard.data.splits import Splits
from regard.runs.parallel import train_and_report
from regard.studies import demo

SMALL_TRANSFORMER = (
    "data.batch.max_tokens=200",
    "model.encoder.num_layers=1",
    "model.decoder.num_layers=1",
)


@pytest.fixture
def small_demo(monkeypatch, tiny_settings):
    """The demo with tiny models, two steps of training and a small test set."""
    briefly = ("train.max_steps=2", "train.validate_every=1")
    settings = {"bahdanau2015": tiny_settings, "vaswani2017": SMALL_TRANSFORMER}

    def find_some(*paths, seed, read):
        found = find_data("phrasebook:100", seed=seed, read=read)
        return Splits(found.train, found.valid[:20], found.test[:20], found.note)

    # In this process: another one would not see the small test set.
    def train_here(requests):
        return all(
            train_and_report(replace(request, settings=(*settings[request.out.name], *briefly)))
            for request in requests
        )

    monkeypatch.setattr("regard.tasks.reading.find_data", find_some)
    monkeypatch.setattr("regard.studies.demo.train_in_parallel", train_here)


def test_demo_compares_translates_looks_and_reports(regard, small_demo, tmp_path):
    answer = regard("demo", "--out", tmp_path)
    assert answer.code == 0
    for part in (
        "At a glance",
        "alignment error rate",
        "Translations:",
        "Where they looked",
        "Comparison: ",
    ):
        assert part in answer.out
    assert (tmp_path / "comparison.html").exists()
    for name in demo.MODELS:
        assert len(re.findall(f"^    {name} +→ ", answer.out, re.MULTILINE)) == len(demo.SENTENCES)
        assert (tmp_path / name / "report.html").exists()


def test_second_demo_goes_straight_to_the_results(regard, small_demo, monkeypatch, tmp_path):
    regard("demo", "--out", tmp_path)

    def never(requests):
        raise AssertionError("nothing should be trained")

    monkeypatch.setattr("regard.studies.demo.train_in_parallel", never)
    answer = regard("demo", "--out", tmp_path)
    assert answer.code == 0
    assert "holds trained models; remove the folder to train again." in answer.out


def test_demo_that_is_stopped_says_how_to_go_on(regard, monkeypatch, tmp_path):
    monkeypatch.setattr("regard.studies.demo.train_in_parallel", lambda requests: False)
    answer = regard("demo", "--out", tmp_path)
    assert answer.code == 130
    assert "The same command goes on." in answer.err
