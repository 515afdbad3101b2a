"""`data.batch.max_tokens=auto`: the number is found before training and kept in the run folder."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from regard.core.errors import ConfigError
from regard.runs import max_tokens
from regard.runs import train as training
from regard.runs.explain import explain
from regard.runs.folder import WEIGHTS
from regard.runs.request import Request
from regard.runs.saved.config import read_config
from regard.runs.train import train
from regard.tasks.generation.task import Predictor
from regard.training import batch_size
from regard.training.checkpoint import read_weights

AUTO = ("data.batch.max_tokens=auto", "data.batch.max_length=20", "train.max_epochs=2")
DROPOUT = ("model.encoder.dropout=0.3", "model.decoder.dropout=0.3")


def saved_number(folder):
    return read_config(folder)["recipe"]["data"]["batch"]["max_tokens"]


def assert_equal_weights(folder, other):
    first, second = (read_weights(one / WEIGHTS) for one in (folder, other))
    assert first.keys() == second.keys()
    assert all(torch.equal(tensor, second[name]) for name, tensor in first.items())


@pytest.fixture
def gpu(monkeypatch):
    """A simulated GPU whose memory holds the passes of a batch of 150 positions."""
    monkeypatch.setattr(max_tokens, "is_measurable", lambda device: True)
    monkeypatch.setattr(max_tokens, "MIN_TOKENS", 32)
    monkeypatch.setattr(batch_size, "MIN_BATCHES", 3)
    monkeypatch.setattr(batch_size, "usable_memory", lambda device: 1)
    monkeypatch.setattr(batch_size, "peak_memory", lambda device: 0)
    original = Predictor.loss

    def loss(task, batch):
        if task.model.training and batch.target.numel() > 150:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return original(task, batch)

    monkeypatch.setattr(Predictor, "loss", loss)


def test_training_equals_that_with_the_number_found(gpu, reverse_files, tmp_path, messages):
    train(reverse_files.request(tmp_path / "auto", *AUTO, *DROPOUT))
    assert saved_number(tmp_path / "auto") == 128
    assert any("at most 128 tokens" in message for message in messages())
    assert not any("does not fit into memory" in message for message in messages())
    given = (*AUTO, *DROPOUT, "data.batch.max_tokens=128")
    train(reverse_files.request(tmp_path / "given", *given))
    assert_equal_weights(tmp_path / "auto", tmp_path / "given")


def test_resumed_run_uses_the_number_of_the_folder(gpu, reverse_files, interrupted_at, tmp_path):
    train(reverse_files.request(tmp_path / "whole", *AUTO, *DROPOUT))
    request = reverse_files.request(tmp_path / "parts", *AUTO, *DROPOUT)
    assert train(request, display=interrupted_at(5)).summary.stopped == "interrupted"
    batch_size.MIN_BATCHES = 1000  # A new search would find another number.
    train(replace(request, is_resumed=True, recipe=None, settings=("data.batch.max_tokens=auto",)))
    assert saved_number(tmp_path / "parts") == 128
    assert_equal_weights(tmp_path / "whole", tmp_path / "parts")


def test_number_is_the_default_on_a_cpu(reverse_files, tmp_path, messages):
    train(reverse_files.request(tmp_path, *AUTO, "train.max_epochs=1"))
    assert saved_number(tmp_path) == 4096
    assert any("at most 4,096 tokens" in message for message in messages())


def test_several_processes_need_a_number(reverse_files, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "find_processes", lambda: SimpleNamespace(num=2))
    with pytest.raises(ConfigError, match="must be a number for several processes, .* is 'auto'"):
        train(reverse_files.request(tmp_path / "run", *AUTO))
    assert not (tmp_path / "run").exists()


def test_language_models_warn_that_the_setting_has_no_effect(tmp_path, messages):
    path = tmp_path / "text.txt"
    path.write_text("a b c d e f g h\n" * 200)
    settings = ("data.batch.max_tokens=auto", "train.max_steps=1", "train.max_epochs=0")
    out = tmp_path / "run"
    recipe = "karpathy2015-laptop"
    train(Request(data=(str(path),), recipe=recipe, settings=settings, out=out, device="cpu"))
    assert any("`data.batch.max_tokens` has no effect" in message for message in messages())


def test_setting_is_explained_and_read_back():
    assert 'max_tokens = "auto"' in explain("modern-laptop", ["data.batch.max_tokens=auto"])


@pytest.mark.parametrize("value", ["atuo", "true", "1.5"])
def test_other_values_are_refused(value):
    with pytest.raises(ConfigError, match=r"^`data.batch.max_tokens` must be int or 'auto', but i"):
        explain("modern-laptop", [f"data.batch.max_tokens={value}"])
