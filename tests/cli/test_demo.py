from dataclasses import replace

import pytest

from regard.data.datasets import find_data
from regard.data.splitting import Splits
from regard.tasks.learning import train


@pytest.fixture
def small_demo(monkeypatch, tiny_settings):
    """The demo with a tiny model, two steps of training and a small test set."""

    def find_some(*paths, seed=0):
        found = find_data("phrasebook:100", seed=seed)
        return Splits(found.train, found.valid[:20], found.test[:20], found.note)

    def train_briefly(request):
        words = (*tiny_settings, "train.max_steps=2", "train.validate_every=1")
        return train(replace(request, settings=words))

    monkeypatch.setattr("regard.tasks.request.find_data", find_some)
    monkeypatch.setattr("regard.tasks.learning.train", train_briefly)


def test_demo_trains_scores_translates_looks_and_reports(regard, small_demo, tmp_path):
    answer = regard("demo", "--out", tmp_path / "demo")
    assert answer.code == 0
    for part in ("held-out sentences:", "  BLEU ", "Translations:", "Where it looked", "Report: "):
        assert part in answer.out
    assert (tmp_path / "demo" / "report.html").exists()


def test_second_demo_goes_straight_to_the_results(regard, small_demo, tmp_path):
    regard("demo", "--out", tmp_path / "demo")
    weights = tmp_path / "demo" / "model.safetensors"
    before = weights.stat().st_mtime_ns
    answer = regard("demo", "--out", tmp_path / "demo")
    assert "holds a trained model; remove the folder to train again." in answer.out
    assert weights.stat().st_mtime_ns == before
