import json
import math
import re

import pytest
import torch

import regard
from regard.core.errors import CheckpointError, ConfigError
from regard.core.files import read_json, write_json
from regard.data.example import Example
from regard.data.text.field import TOKENIZER
from regard.data.text.readers import read_examples, write_examples
from regard.runs.folder import (
    METRICS,
    PREDICTIONS,
    REPORT,
    TEST,
    WEIGHTS,
    initialize_folder,
    load,
    load_as,
    predict,
    read_metrics,
    read_test_set,
)
from regard.runs.saved.config import CONFIG, read_config
from regard.runs.train import train
from regard.tasks.classification.task import ClassificationTask
from regard.tasks.generation.task import Predictor
from tests.fixtures.runs import copy_without_checksums

SOURCE, TARGET = (TOKENIZER.format(side) for side in ("source", "target"))
SOURCES = ["a b c", "e d", "b a c d"]


def change_config(folder, **values):
    path = folder / CONFIG
    config = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**config, **values}), encoding="utf-8")


def test_loaded_run_predicts_like_the_trained_one(tiny_run):
    loaded = load(tiny_run.folder)
    assert loaded.predict(SOURCES) == tiny_run.predictor.predict(SOURCES)
    assert loaded.recipe == tiny_run.predictor.recipe


def test_run_can_be_moved(tiny_run, tiny_folder):
    moved = tiny_folder.rename(tiny_folder.with_name("moved"))
    assert predict(moved, SOURCES) == tiny_run.predictor.translate(SOURCES)


def test_run_predicts_without_its_training_state(tiny_run, tiny_folder):
    kept = {CONFIG, WEIGHTS, SOURCE, TARGET}
    for path in tiny_folder.iterdir():
        if path.is_file() and path.name not in kept:
            path.unlink()
    assert predict(tiny_folder, SOURCES) == tiny_run.predictor.translate(SOURCES)


def test_tied_weights_are_stored_once_and_load_back(reverse_files, tmp_path):
    settings = ("data.is_joint=true", "model.ties=all", "train.max_steps=1")
    trained = train(reverse_files.request(tmp_path, *settings))
    loaded = load(tmp_path)
    assert loaded.model.encoder.embedding.weight is loaded.model.decoder.output.weight
    assert loaded.num_parameters == trained.predictor.num_parameters
    assert loaded.predict(SOURCES) == trained.predictor.predict(SOURCES)


def test_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(
        CheckpointError, match=r"absent is not a folder\. Give a run folder made by `regard train`"
    ):
        load(tmp_path / "absent")


@pytest.mark.parametrize("name", [CONFIG, WEIGHTS, SOURCE, TARGET])
def test_missing_file_is_named(tiny_folder, name):
    (tiny_folder / name).unlink()
    with pytest.raises(
        CheckpointError, match=rf"{re.escape(name)} is missing\. Is .*run a run folder\?"
    ):
        load(tiny_folder)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        (CONFIG, "is not valid JSON .* The file is damaged"),
        (WEIGHTS, r"is damaged \(.*\)\. Copy it again, or train again"),
        (SOURCE, "is not a tokenizer: .* It is damaged"),
    ],
)
def test_truncated_file_is_named(tiny_folder, name, fault):
    path = tiny_folder / name
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(CheckpointError, match=rf"{re.escape(name)} {fault}"):
        load(tiny_folder)


def test_run_of_another_format_is_refused(tiny_folder):
    change_config(tiny_folder, format=99)
    with pytest.raises(
        CheckpointError,
        match=r"was saved in format 99; this version reads format 2\. Upgrade with `pip install",
    ):
        load(tiny_folder)


def test_older_format_is_refused_with_the_advice_to_train_again(tiny_folder):
    change_config(tiny_folder, format=1)
    with pytest.raises(CheckpointError, match=r"format 1; .* reads format 2\. Train again\."):
        load(tiny_folder)


def test_weights_of_another_model_are_refused(tiny_folder):
    recipe = json.loads((tiny_folder / CONFIG).read_text(encoding="utf-8"))["recipe"]
    recipe["model"]["encoder"]["dim"] = 7
    change_config(tiny_folder, recipe=recipe)
    with pytest.raises(CheckpointError, match=r"does not fit the model: .* is .* but must be"):
        load(tiny_folder)


def test_config_holds_the_provenance(tiny_run, reverse_files):
    about = read_config(tiny_run.folder)["about"]
    assert about["data"] == [reverse_files.train]
    assert (about["regard"], about["torch"]) == (regard.__version__, torch.__version__)


def test_results_of_an_earlier_run_are_deleted_at_the_start(tiny_run, tiny_folder):
    initialize_folder(tiny_folder, tiny_run.predictor, {})
    results = (WEIGHTS, METRICS, PREDICTIONS, REPORT)
    assert [name for name in results if (tiny_folder / name).exists()] == []


def test_run_of_another_class_is_refused(tiny_run):
    assert isinstance(load_as(Predictor, tiny_run.folder), Predictor)
    with pytest.raises(ConfigError, match="ClassificationTask.*'generation'"):
        load_as(ClassificationTask, tiny_run.folder)


def test_test_set_is_restored_as_it_was_written(tiny_run, reverse_files):
    assert read_test_set(tiny_run.folder) == read_examples(reverse_files.test)


def test_several_texts_and_empty_targets_of_a_test_set_are_restored(tiny_run, tmp_path):
    folder = copy_without_checksums(tiny_run.folder, tmp_path / "run")
    examples = [
        Example(("a b", "c"), "d", references=("e",), alignment=((0, 1),), tags=("t",)),
        Example("one line of a text\n"),
    ]
    write_examples(folder / TEST, examples)
    assert read_test_set(folder) == examples


def test_run_without_a_test_set_is_refused(tiny_run, tmp_path):
    folder = copy_without_checksums(tiny_run.folder, tmp_path / "run")
    (folder / TEST).unlink()
    with pytest.raises(CheckpointError, match=r"test\.jsonl.*Name a data set"):
        read_test_set(folder)


@pytest.mark.parametrize("side", ["source", "target"])
def test_row_without_a_text_is_refused(tiny_run, tmp_path, side):
    folder = copy_without_checksums(tiny_run.folder, tmp_path / "run")
    row = {"source": "a", "target": "b", side: []}
    (folder / TEST).write_text(json.dumps(row) + "\n")
    message = rf"test\.jsonl is not from a run: `\[0\]\.{side}` must be a string, but is \[\]\. The"
    with pytest.raises(CheckpointError, match=message):
        read_test_set(folder)


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("name", ["seconds", "tokens_per_second"])
def test_training_cost_that_is_not_finite_is_refused(tiny_run, tmp_path, name, value):
    folder = copy_without_checksums(tiny_run.folder, tmp_path / "run")
    metrics = read_json(folder / METRICS)
    write_json(folder / METRICS, {**metrics, "training": {**metrics["training"], name: value}})
    message = rf"metrics\.json is not from a run: `training\.{name}` must be a finite number"
    with pytest.raises(CheckpointError, match=message):
        read_metrics(folder)


@pytest.mark.parametrize("kind", ["by_length", "by_tag", "by_unit"])
@pytest.mark.parametrize(
    ("group", "named"),
    [
        ({"count": 1, "bleu": 1.0}, r"`test\.{}\[0\]\.name` is missing"),
        ({"name": "a", "bleu": 1.0}, r"`test\.{}\[0\]\.count` is missing"),
        ({"name": "a", "count": "1", "bleu": 1.0}, r"`test\.{}\[0\]\.count` must be an integer"),
        (
            {"name": "a", "count": 1, "bleu": "1"},
            r"`{}\[0\]` is not .*: `bleu` must be a number",
        ),
        ({"name": "a", "count": 1}, r"`{}\[0\]` has no score"),
    ],
)
def test_group_of_results_with_other_values_is_refused(tiny_run, tmp_path, kind, group, named):
    folder = copy_without_checksums(tiny_run.folder, tmp_path / "run")
    metrics = read_json(folder / METRICS)
    write_json(folder / METRICS, {**metrics, "test": {**metrics["test"], kind: [group]}})
    with pytest.raises(CheckpointError, match=rf"metrics\.json.*{named.format(kind)}"):
        read_metrics(folder)


def test_ensemble_of_runs_with_different_test_sets_is_refused(tiny_run, tmp_path):
    other = copy_without_checksums(tiny_run.folder, tmp_path / "run")
    assert len(read_test_set(f"{tiny_run.folder},{other}")) == 30
    write_examples(other / TEST, [Example("a b", "b a")])
    with pytest.raises(CheckpointError, match="different test sets"):
        read_test_set(f"{tiny_run.folder},{other}")
