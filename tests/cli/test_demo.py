import re
from dataclasses import replace

import pytest

from regard.cli.model import demo as command
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
def small_demo(monkeypatch, tiny_settings, with_reports):
    """The demo with tiny models, two steps of training and a small test set."""
    few_steps = ("train.max_steps=2", "train.validate_every=1")
    settings = {"bahdanau2015": tiny_settings, "vaswani2017": SMALL_TRANSFORMER}

    def find_small_data(*paths, seed, read):
        splits = find_data("phrasebook:100", seed=seed, read=read)
        return Splits(splits.train, splits.valid[:20], splits.test[:20], splits.note)

    # Train in this process: another one would not see the small test set.
    def train_here(requests):
        return all(
            train_and_report(replace(request, settings=(*settings[request.out.name], *few_steps)))
            for request in requests
        )

    monkeypatch.setattr("regard.tasks.reading.find_data", find_small_data)
    monkeypatch.setattr("regard.studies.demo.train_in_parallel", train_here)


def test_demo_prints_comparison_translations_attention_and_reports(regard, small_demo, tmp_path):
    result = regard("demo", "--out", tmp_path)
    assert result.code == 0
    for part in (
        "Overview",
        "alignment error rate",
        "Translations:",
        "Attention weights (rows: target; columns: source)",
        "Comparison: ",
    ):
        assert part in result.out
    assert (tmp_path / "comparison.html").exists()
    for name in demo.MODELS:
        assert len(re.findall(f"^    {name} +→ ", result.out, re.MULTILINE)) == len(demo.SENTENCES)
        assert (tmp_path / name / "report.html").exists()


def test_second_demo_reuses_the_trained_models(regard, small_demo, monkeypatch, tmp_path):
    regard("demo", "--out", tmp_path)

    def never(requests):
        raise AssertionError("nothing should be trained")

    monkeypatch.setattr("regard.studies.demo.train_in_parallel", never)
    result = regard("demo", "--out", tmp_path)
    assert result.code == 0
    assert "holds trained models; remove the folder to train again." in result.out


def test_interrupted_demo_prints_how_to_resume(regard, monkeypatch, tmp_path):
    monkeypatch.setattr("regard.studies.demo.train_in_parallel", lambda requests: False)
    result = regard("demo", "--out", tmp_path)
    assert result.code == 130
    assert "Run the same command to resume." in result.err


def test_command_is_named_by_its_path_if_it_is_not_found(monkeypatch):
    monkeypatch.setattr("sys.argv", [".venv/bin/regard", "demo"])
    monkeypatch.setenv("PATH", "")
    assert command.command_name() == ".venv/bin/regard"
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert command.command_name() == "regard"
