"""The choice of `search.precision=auto`: by speed and BLEU, stored by hardware and weights."""

import shutil
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from regard.core.checksums import CHECKSUMS, find_faults
from regard.core.errors import ConfigError, DataError
from regard.core.files import read_json, write_json
from regard.interop.batch_search import BatchSearchPredictor
from regard.runs.folder import METRICS, WEIGHTS, check_folder, load, prepare_to_resume
from regard.runs.lock import FolderLock
from regard.runs.saved import precision
from regard.runs.saved.config import CONFIG
from regard.runs.saved.data import read_run_data
from regard.runs.saved.precision import PRECISION, Speed, choose, measure, read_choices
from regard.runs.train import train
from regard.search.settings import SearchConfig
from regard.tasks.decoding.beam_tree import find_beam_tree
from regard.tasks.decoding.preparation import PACKED_MODELS
from regard.tasks.search import search_with
from regard.training.checkpoint import save_weights

AUTO = SearchConfig(beams=2, precision="auto")


def speeds(**pairs):
    return {
        name: Speed(sentences_per_second=speed, bleu=bleu) for name, (speed, bleu) in pairs.items()
    }


@pytest.fixture
def measurements(monkeypatch):
    """Measurements to return instead of taking them; each call adds its number of examples."""
    calls = []

    def measured(task, examples):
        calls.append(len(examples))
        return speeds(fp32=(10, 30.0), bf16=(20, 29.95), int8=(40, 29.0))

    monkeypatch.setattr(precision, "measure", measured)
    return calls


def packed_precision(task, monkeypatch):
    """Return the precision in which a task searches with `auto`."""
    found = []
    find = type(PACKED_MODELS).find

    def spy(self, model, name):
        found.append(name)
        return find(self, model, name)

    with monkeypatch.context() as patch:
        patch.setattr(type(PACKED_MODELS), "find", spy)
        task.predict(["a b c"], search=AUTO)
    (name,) = found
    return name


@pytest.mark.parametrize(
    ("bf16", "chosen"),
    [
        ((20, 30.5), "bf16"),
        ((20, 29.91), "bf16"),
        ((20, 29.89), "fp32"),  # the loss is too large
        ((9, 31.0), "fp32"),  # slower
    ],
)
def test_fastest_precision_without_a_loss_of_bleu_is_chosen(bf16, chosen):
    assert choose(speeds(fp32=(10, 30.0), bf16=bf16)) == chosen


def test_choice_is_stored_and_reused(checked_folder, measurements, monkeypatch):
    task = load(checked_folder, "cpu")
    assert packed_precision(task, monkeypatch) == "bf16"
    assert packed_precision(task, monkeypatch) == "bf16"
    assert packed_precision(load(checked_folder, "cpu"), monkeypatch) == "bf16"
    assert measurements == [30]
    ((hardware, choice),) = read_choices(checked_folder / PRECISION).items()
    assert "thread" in hardware
    assert choice["precision"] == "bf16"
    assert (choice["sentences"], choice["beams"]) == (30, task.search.beams)
    assert choice["measured"]["int8"]["bleu"] == 29.0


def test_stored_choice_has_a_checksum_and_may_be_deleted(checked_folder, measurements):
    load(checked_folder, "cpu").predict(["a b"], search=AUTO)
    assert checked_folder / PRECISION in check_folder(checked_folder)
    assert not (checked_folder / ".lock").exists()
    (checked_folder / PRECISION).unlink()
    load(checked_folder, "cpu").predict(["a b"], search=AUTO)
    assert len(measurements) == 2
    assert find_faults(checked_folder) == []


def test_other_hardware_measures_again_and_keeps_the_first(
    checked_folder, measurements, monkeypatch
):
    load(checked_folder, "cpu").predict(["a b"], search=AUTO)
    monkeypatch.setattr(precision, "describe_hardware", lambda device: "another")
    load(checked_folder, "cpu").predict(["a b"], search=AUTO)
    assert len(measurements) == 2
    assert len(read_choices(checked_folder / PRECISION)) == 2


def test_another_number_of_threads_measures_again(checked_folder, measurements):
    task, threads = load(checked_folder, "cpu"), torch.get_num_threads()
    try:
        for num in (1, 2, 1):
            torch.set_num_threads(num)
            task.predict(["a b"], search=AUTO)
    finally:
        torch.set_num_threads(threads)
    assert len(measurements) == 2


def test_replaced_weights_measure_again(tiny_folder, measurements):
    task = load(tiny_folder, "cpu")
    task.predict(["a b"], search=AUTO)
    with torch.no_grad():
        next(task.model.parameters()).mul_(1.1)
    save_weights(task.model, tiny_folder / WEIGHTS)
    load(tiny_folder, "cpu").predict(["a b"], search=AUTO)
    assert len(measurements) == 2
    assert len(read_choices(tiny_folder / PRECISION)) == 1


def test_resumed_training_deletes_the_choice(checked_folder, measurements):
    load(checked_folder, "cpu").predict(["a b"], search=AUTO)
    prepare_to_resume(checked_folder)
    assert not (checked_folder / PRECISION).exists()
    assert PRECISION not in read_json(checked_folder / CHECKSUMS)


@pytest.mark.parametrize(
    "content",
    ["{", "[]", '{"x": {"precision": "bf16"}}', "fp64", "fp32 missing"],
)
def test_damaged_file_is_measured_again_with_a_warning(tiny_folder, measurements, caplog, content):
    path = tiny_folder / PRECISION
    load(tiny_folder, "cpu").predict(["a b"], search=AUTO)
    choices = read_json(path)
    (hardware,) = choices
    if content == "fp64":
        write_json(path, {hardware: {**choices[hardware], "precision": "fp64"}})
    elif content == "fp32 missing":
        write_json(path, {hardware: {**choices[hardware], "measured": {}}})
    else:
        path.write_text(content, encoding="utf-8")
    load(tiny_folder, "cpu").predict(["a b"], search=AUTO)
    assert len(measurements) == 2
    assert str(path) in caplog.text
    assert "damaged" in caplog.text
    assert read_json(path) == choices


def test_changed_file_differs_from_its_checksum_and_is_measured_again(
    checked_folder, measurements, caplog
):
    path = checked_folder / PRECISION
    load(checked_folder, "cpu").predict(["a b"], search=AUTO)
    path.write_text(path.read_text(encoding="utf-8").replace("bf16", "int8"), encoding="utf-8")
    load(checked_folder, "cpu").predict(["a b"], search=AUTO)
    assert len(measurements) == 2
    assert "differs from its checksum" in caplog.text
    assert find_faults(checked_folder) == []


def test_folder_that_cannot_be_written_keeps_the_choice_in_memory(
    checked_folder, measurements, monkeypatch, caplog
):
    @contextmanager
    def refuse(folder):
        raise DataError(f"{folder}/.lock cannot be written: Read-only file system.")
        yield

    monkeypatch.setattr(precision, "FolderLock", refuse)
    task = load(checked_folder, "cpu")
    assert packed_precision(task, monkeypatch) == packed_precision(task, monkeypatch) == "bf16"
    assert len(measurements) == 1
    assert "not stored" in caplog.text
    assert "Read-only" in caplog.text
    assert not (checked_folder / PRECISION).exists()


def test_folder_in_training_stores_no_choice(checked_folder, measurements, caplog):
    with FolderLock(checked_folder):
        load(checked_folder, "cpu").predict(["a b"], search=AUTO)
    assert "in use by another training" in caplog.text
    assert not (checked_folder / PRECISION).exists()


def set_data(folder, paths):
    config = read_json(folder / CONFIG)
    config["about"]["data"] = paths
    write_json(folder / CONFIG, config)


@pytest.mark.parametrize(
    ("paths", "reason"),
    [(["gone.tsv"], "gone.tsv"), ([], "not trained here"), (["-"], "standard input")],
)
def test_missing_validation_data_is_one_line(tiny_folder, measurements, paths, reason):
    set_data(tiny_folder, paths)
    with pytest.raises(ConfigError, match=rf"{reason}.*search\.precision=fp32") as caught:
        load(tiny_folder, "cpu").predict(["a b"], search=AUTO)
    assert "\n" not in str(caught.value)
    assert measurements == []


def test_empty_validation_data_is_one_line(tiny_folder, monkeypatch):
    task = load(tiny_folder, "cpu")
    splits = replace(read_run_data(tiny_folder, task), valid=[])
    monkeypatch.setattr(precision, "read_run_data", lambda folder, task: splits)
    with pytest.raises(ConfigError, match="there is none"):
        task.predict(["a b"], search=AUTO)


def test_examples_are_spread_evenly(tiny_folder, monkeypatch):
    monkeypatch.setattr(precision, "MAX_SENTENCES", 10)
    task = load(tiny_folder, "cpu")
    valid = read_run_data(tiny_folder, task).valid
    assert precision.read_examples(tiny_folder, task) == list(valid[::3])


def test_measurements_are_those_of_each_precision(tiny_run, caplog):
    task = load(tiny_run.folder, "cpu").with_search(SearchConfig(beams=2, temperature=1.0))
    examples = read_run_data(tiny_run.folder, task).valid
    measured = measure(task, examples)
    assert list(measured)[0] == "fp32"
    exact = task.predict([one.source for one in examples], search=SearchConfig(beams=2))
    expected = precision.bleu([best[0].text for best in exact], [[one.target] for one in examples])
    assert measured["fp32"]["bleu"] == expected.value
    assert all(speed["sentences_per_second"] > 0 for speed in measured.values())
    assert "unknown" not in caplog.text


def fake_times(monkeypatch, seconds):
    """Let each precision take a number of seconds; None = it fails."""
    now = [0.0]
    predict = precision.predict_packed

    def timed(task, sources, config):
        if seconds[config.precision] is None:
            raise RuntimeError("no such operation")
        now[0] += seconds[config.precision] * len(sources)
        return predict(task, sources, replace(config, precision="fp32"))

    monkeypatch.setattr(precision, "predict_packed", timed)
    monkeypatch.setattr(precision.time, "perf_counter", lambda: now[0])


def test_slow_and_unsupported_precisions_are_left_out(tiny_run, monkeypatch):
    task = load(tiny_run.folder, "cpu")
    examples = read_run_data(tiny_run.folder, task).valid
    fake_times(monkeypatch, {"fp32": 1.0, "bf16": 3.5, "int8": None})
    assert list(measure(task, examples)) == ["fp32"]
    fake_times(monkeypatch, {"fp32": 1.0, "bf16": 2.5, "int8": 0.5})
    rates = {name: one["sentences_per_second"] for name, one in measure(task, examples).items()}
    assert rates == pytest.approx({"fp32": 1.0, "bf16": 0.4, "int8": 2.0})


def test_gpus_have_no_int8():
    assert precision.find_supported(torch.device("cuda")) == ("bf16",)


def test_error_in_fp32_is_not_hidden(tiny_run, monkeypatch):
    task = load(tiny_run.folder, "cpu")
    fake_times(monkeypatch, {"fp32": None})
    with pytest.raises(RuntimeError, match="no such operation"):
        measure(task, read_run_data(tiny_run.folder, task).valid)


def test_measuring_adds_no_trees_to_that_of_the_caller(checked_folder):
    task = load(checked_folder, "cpu")
    tree = find_beam_tree(task, "a b c", search=AUTO)
    assert (checked_folder / PRECISION).exists()
    chosen = search_with(task, beams=2, overrides=["search.precision=auto"])
    assert chosen.precision in ("fp32", "bf16", "int8")
    known = find_beam_tree(task, "a b c", search=chosen)
    assert [node.token for node in tree.nodes] == [node.token for node in known.nodes]


def test_ensembles_and_new_models_refuse_auto(tiny_run, tmp_path):
    other = Path(shutil.copytree(tiny_run.folder, tmp_path / "other"))
    task = load(tiny_run.folder, "cpu")
    new = type(task)(task.recipe, task.model, task.fields, device=task.device)
    for refusing in (load(f"{tiny_run.folder},{other}", "cpu"), new):
        with pytest.raises(ConfigError, match=r"ensembles.*not loaded.*'auto'"):
            refusing.predict(["a b"], search=AUTO)


def test_language_models_refuse_auto(task_run):
    task = task_run("language_model").predictor
    with pytest.raises(ConfigError, match=r"`search\.precision` must be .* 'auto'"):
        task.predict(["a b"], search=AUTO)
    with pytest.raises(ConfigError, match=r"for a language model, but is 'auto'"):
        task.with_search(AUTO)


def test_another_library_is_given_auto_itself(tiny_run):
    class Other(BatchSearchPredictor):
        """Searches for nothing."""

        def search_batch(self, batch, config, *, max_lengths, num_best):
            raise AssertionError

    task = Other.copy_of(load(tiny_run.folder, "cpu"))
    assert search_with(task, beams=None, overrides=["search.precision=auto"]).precision == "auto"


def test_training_with_auto_evaluates_in_fp32_and_measures_later(reverse_files, tmp_path):
    request = reverse_files.request(
        tmp_path / "run", "search.precision=auto", "train.max_epochs=1", "train.validate_every=5"
    )
    result = train(request)
    assert read_json(request.out / METRICS)["search"]["precision"] == "fp32"
    assert not (request.out / PRECISION).exists()
    assert result.predictor.search.precision == "auto"
    assert result.predictor.translate("a b c") == load(request.out, "cpu").translate("a b c")
    assert len(read_choices(request.out / PRECISION)) == 1
