from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import regard
from regard.core.checksums import CHECKSUMS
from regard.core.files import read_json, read_json_lines
from regard.data.example import Example
from regard.runs import train as training
from regard.runs import training_samples
from regard.runs.folder import SAMPLES, TRAINING_LOG, WEIGHTS, check_folder, initialize_folder
from regard.runs.train import train
from regard.runs.training_samples import SampleLog, choose_samples, compute_samples, thin
from regard.tasks.base import Attends
from regard.training.checkpoint import read_weights
from regard.training.loggers.logger import Logger
from regard.training.logs import read_log
from tests.fixtures.tasks import TASK_CASES

STEPS = ("train.max_steps=6", "train.validate_every=2", "model.encoder.dropout=0.3")


def read(folder):
    return read_json_lines(folder / SAMPLES)


@contextmanager
def without_samples():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "SampleLog", lambda *arguments: Logger())
        yield


def equal_weights(first, second):
    ours, theirs = (read_weights(folder / "resume" / WEIGHTS) for folder in (first, second))
    assert ours.keys() == theirs.keys()
    return all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())


def test_every_validation_adds_samples_with_attention(reverse_files, tmp_path):
    train(reverse_files.request(tmp_path / "run", *STEPS))
    rows = read(tmp_path / "run")
    assert [(row["step"], row["example"]) for row in rows] == [
        (step, example) for step in (2, 4, 6) for example in range(3)
    ]
    known = {row["source"]: row["target"] for row in read_json_lines(Path(reverse_files.valid))}
    log = read_log(tmp_path / "run" / TRAINING_LOG)
    times = {row["step"]: row["seconds"] for row in log if row["kind"] == "valid"}
    for row in rows:
        assert known[row["source"]] == row["reference"]
        assert (row["epoch"], row["seconds"]) == (1, times[row["step"]])
        found = row["attention"]
        assert (found["kind"], found["grid"]) == ("attention", None)
        assert found["source"][: len(row["source"].split())] == row["source"].split()
        weights = torch.tensor(found["weights"])
        assert weights.shape == (len(found["target"]), len(found["source"]))
        assert torch.allclose(weights.sum(-1), torch.ones(len(weights)), atol=1e-3)
        assert all(len(str(weight)) <= 6 for line in found["weights"] for weight in line)


def test_samples_are_those_of_the_weights(reverse_files, tmp_path):
    request = reverse_files.request(tmp_path, "train.max_steps=4", "train.validate_every=4")
    train(request)
    task = regard.load(tmp_path, device="cpu")
    for row in read(tmp_path):
        (best,) = task.predict([row["source"]], search=task.search.greedy())
        assert row["prediction"] == best[0].text
        (found,) = task.attend([Example(row["source"], best[0].text)])
        weights = torch.tensor(row["attention"]["weights"])
        assert torch.allclose(weights, found.mean(), atol=1e-4)


@pytest.mark.parametrize("name", TASK_CASES)
def test_tasks(task_run, name):
    result = task_run(name)
    rows = read(result.folder) if (result.folder / SAMPLES).exists() else []
    assert len(rows) == {"image_to_image": 0}.get(name, 6)
    for row in rows:
        assert isinstance(row["prediction"], str) and row["reference"]
        assert (row["source"] is None) == (name in ("classification", "segmentation"))
        assert ("probability" in row) == bool(result.predictor.label_names)
        has_map = isinstance(result.predictor, Attends) and name != "autoencoding"
        assert (row["attention"] is not None) == has_map
        if name == "language_model":
            assert row["reference"].startswith(row["source"])
            assert row["prediction"].startswith(row["source"])


@pytest.mark.parametrize("name", TASK_CASES)
def test_samples_change_no_training(task_run, tmp_path, name):
    """The model, the training batches and random generators of every task stay as they were."""
    folder = task_run(name).folder
    config = read_json(folder / "config.json")
    data = {side: config["about"][side] for side in ("data", "valid", "test")}
    recipe = regard.load(folder, device="cpu").recipe
    with without_samples():
        train(training.Request(**data, recipe=recipe, out=tmp_path / "without", device="cpu"))
    assert not (tmp_path / "without" / SAMPLES).exists()
    assert equal_weights(folder, tmp_path / "without")


def test_resumed_run_has_the_samples_of_one_without_interruption(
    reverse_files, interrupted_at, tmp_path
):
    whole = reverse_files.request(tmp_path / "whole", *STEPS)
    train(whole)
    with without_samples():
        train(replace(whole, out=tmp_path / "without"))
    parts = replace(whole, out=tmp_path / "parts")
    train(parts, display=interrupted_at(5))
    resumed = replace(parts, is_resumed=True, recipe=None, settings=())
    train(resumed)
    rows, expected = (read(tmp_path / name) for name in ("parts", "whole"))
    for row in (*rows, *expected):
        del row["seconds"]
    assert rows == expected
    for name in ("whole", "without"):
        assert equal_weights(tmp_path / "parts", tmp_path / name)
    assert SAMPLES in read_json(tmp_path / "parts" / CHECKSUMS)
    check_folder(tmp_path / "parts")


def test_later_samples_are_dropped(tiny_run, tmp_path):
    log = SampleLog(tmp_path, tiny_run.predictor, [Example("a b", "b a")])
    log.truncate(after=3)
    assert not (tmp_path / SAMPLES).exists()
    for step in (2, 4):
        with log.validating():
            pass
        log.write({"kind": "valid", "step": step, "epoch": 1, "seconds": 0.5, "value": 1.0})
    with (tmp_path / SAMPLES).open("a") as file:
        file.write('{"step": 6, "pre')  # by a process that was killed
    log.truncate(after=3)
    assert [row["step"] for row in read(tmp_path)] == [2]


def test_only_validations_of_the_current_weights_are_logged(tiny_run, tmp_path):
    log = SampleLog(tmp_path, tiny_run.predictor, [Example("a b", "b a")])
    for kind in ("average", "train", "valid"):
        row = {"kind": kind, "step": 2, "epoch": 1, "seconds": 0.5}
        if kind == "average":
            with log.validating():
                pass
        log.write(row)
    assert not (tmp_path / SAMPLES).exists()


def test_error_is_one_warning(reverse_files, tmp_path, monkeypatch, caplog):
    def fail(*arguments):
        raise RuntimeError("no memory")

    monkeypatch.setattr(training_samples, "compute_samples", fail)
    assert train(reverse_files.request(tmp_path, *STEPS)).evaluation is not None
    assert caplog.text.count("Samples of the training cannot be computed") == 1
    assert "(RuntimeError: no memory)." in caplog.text
    assert not (tmp_path / SAMPLES).exists()


def test_warnings_about_sources_are_not_repeated(tiny_run, tmp_path, caplog):
    log = SampleLog(tmp_path, tiny_run.predictor, [Example("a § b", "b a")])
    with log.validating():
        pass
    assert caplog.text == ""
    tiny_run.predictor.translate("a § b")
    assert "§" in caplog.text or "unknown" in caplog.text


def test_model_without_attention(tiny_run_without_attention):
    rows = read(tiny_run_without_attention.folder)
    assert rows and all(row["attention"] is None for row in rows)


def test_examples_of_moderate_length_come_first(tiny_run):
    lengths = [3, 200, 40, 500, 30, 50]
    examples = [Example("a" * length, "b" * length) for length in lengths]
    chosen = choose_samples(tiny_run.predictor, examples)
    assert [len(sample.source) for sample in chosen] == [40, 30, 50]
    chosen = choose_samples(tiny_run.predictor, examples[:3])
    assert [len(sample.source) for sample in chosen] == [3, 200, 40]
    assert choose_samples(tiny_run.predictor, []) == []
    assert compute_samples(tiny_run.predictor, []) == []


def test_large_maps_and_long_texts_are_shortened(tiny_run, monkeypatch):
    samples = choose_samples(tiny_run.predictor, [Example("a b c", "c b a" * 500)])
    monkeypatch.setattr(training_samples, "MAX_WEIGHTS", 3)
    (row,) = compute_samples(tiny_run.predictor, samples)
    assert row["attention"] is None
    assert len(row["reference"]) == 1_001


def test_size_of_the_file_is_limited(tiny_run, tmp_path):
    log = SampleLog(tmp_path, tiny_run.predictor, [Example("a b", "b a")])
    log._max_bytes = 3_000
    for step in range(1, 101):
        with log.validating():
            pass
        log.write({"kind": "valid", "step": step, "epoch": 1, "seconds": 0.5})
        assert (tmp_path / SAMPLES).stat().st_size <= 3_000
    steps = [row["step"] for row in read(tmp_path)]
    assert steps[-1] == 100
    assert steps == sorted({*steps})
    assert len(steps) > 3
    assert [row["step"] for row in thin([{"step": step} for step in (1, 1, 2, 3, 3)])] == [
        1, 1, 3, 3,
    ]  # fmt: skip


def test_samples_pack_no_weights(tiny_run, tmp_path):
    """A copy of the weights for three sentences would take longer than their search."""
    task = regard.load(tiny_run.folder, device="cpu")
    calls = []
    original = task.model.encoder.forward
    task.model.encoder.forward = lambda *a, **o: (calls.append(1), original(*a, **o))[1]
    log = SampleLog(tmp_path, task, [Example("a b", "b a")])
    with log.validating():
        pass
    assert calls


def test_new_run_in_the_folder_removes_samples(tiny_run, tmp_path):
    (tmp_path / SAMPLES).write_text('{"step": 1}\n')
    initialize_folder(tmp_path, tiny_run.predictor, {})
    assert not (tmp_path / SAMPLES).exists()
