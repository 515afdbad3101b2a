import os
import re
import shutil
from dataclasses import replace

import pytest
import torch

from regard.core import checksums
from regard.core.checksums import CHECKSUMS
from regard.core.errors import CheckpointError
from regard.core.files import read_json
from regard.data.text.field import TOKENIZER
from regard.runs.folder import (
    LOGS,
    METRICS,
    PREDICTIONS,
    TEST,
    WEIGHTS,
    check_folder,
    initialize_folder,
    load,
    prepare_to_resume,
    read_test_set,
)
from regard.runs.report import read_evaluation, write_report
from regard.runs.saved.config import CONFIG
from regard.runs.train import train
from regard.studies.compare.finished_runs import read_finished_runs
from regard.training.checkpoint import read_weights

SOURCE = TOKENIZER.format("source")
OPENED = (CONFIG, WEIGHTS, SOURCE)
WRITTEN = {CONFIG, WEIGHTS, SOURCE, TOKENIZER.format("target"), TEST, *LOGS, METRICS}


def flip(path, position=None):
    """Change one bit of a file, in the middle if no position is given."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2 if position is None else position] ^= 1
    path.write_bytes(content)


def test_every_file_of_a_finished_run_has_a_checksum(tiny_run):
    files = {path.name for path in tiny_run.folder.iterdir() if path.is_file()}
    assert read_json(tiny_run.folder / CHECKSUMS).keys() == files - {CHECKSUMS}
    assert files >= WRITTEN | {PREDICTIONS}
    names = {path.name for path in check_folder(tiny_run.folder)}
    assert names == files - {CHECKSUMS} | {"training.safetensors", "training.json"}


@pytest.mark.parametrize("name", OPENED)
@pytest.mark.parametrize("damage", [flip, lambda path: path.write_bytes(b"")], ids=["bit", "empty"])
def test_damaged_file_is_named_when_a_run_is_opened(checked_folder, name, damage):
    damage(checked_folder / name)
    with pytest.raises(
        CheckpointError, match=rf"run is damaged: {re.escape(name)} .*Copy it again"
    ):
        load(checked_folder, "cpu")


def test_list_that_is_deleted_lets_changed_files_pass(checked_folder):
    config = checked_folder / CONFIG
    config.write_text(config.read_text(encoding="utf-8").replace("  ", " "), encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"delete checksums\.json beside it\."):
        load(checked_folder, "cpu")
    (checked_folder / CHECKSUMS).unlink()
    load(checked_folder, "cpu")


def test_results_may_be_deleted(checked_folder):
    for name in (TEST, *LOGS, METRICS, PREDICTIONS):
        (checked_folder / name).unlink()
    shutil.rmtree(checked_folder / "resume")
    load(checked_folder, "cpu")


def test_damaged_test_set_and_results_are_named_by_their_readers(checked_folder, tiny_run):
    readers = {
        TEST: lambda: read_test_set(checked_folder),
        METRICS: lambda: read_evaluation(checked_folder, tiny_run.predictor),
        PREDICTIONS: lambda: read_finished_runs([checked_folder, tiny_run.folder]),
    }
    for name, read in readers.items():
        flip(checked_folder / name)
        with pytest.raises(CheckpointError, match=f"run is damaged: {name} differs"):
            read()
        flip(checked_folder / name)
        read()


@pytest.mark.parametrize("position", [0, 100, -1])
def test_check_finds_every_flipped_bit(checked_folder, position):
    check_folder(checked_folder)
    for path in sorted(checked_folder.rglob("*")):
        if path.is_file() and path.name != CHECKSUMS:
            flip(path, position)
            damage = rf"{re.escape(str(path.parent))}: {re.escape(path.name)} differs from"
            with pytest.raises(CheckpointError, match=damage):
                check_folder(checked_folder)
            flip(path, position)


def test_zeros_inside_large_weights_are_found_by_check(checked_folder, monkeypatch):
    monkeypatch.setattr(checksums, "SMALL", 1000)
    monkeypatch.setattr(checksums, "HEAD", 1000)
    path = checked_folder / WEIGHTS
    path.unlink()
    (checked_folder / CHECKSUMS).unlink()
    shutil.copy(checked_folder / "resume" / WEIGHTS, path)
    shutil.rmtree(checked_folder / "resume")
    checksums.add_checksums(checked_folder)
    with path.open("r+b") as file:
        file.seek(8000)
        file.write(bytes(4096))
    load(checked_folder, "cpu")
    with pytest.raises(CheckpointError, match=r"model\.safetensors differs from its checksum"):
        check_folder(checked_folder)


def test_folder_without_checksums_cannot_be_checked(tiny_folder):
    with pytest.raises(CheckpointError, match=r"run has no checksums\.json, so its files cannot"):
        check_folder(tiny_folder)


def test_report_written_again_has_its_checksum(checked_folder, tiny_run):
    evaluation, examples = read_evaluation(checked_folder, tiny_run.predictor)
    for num_samples in (1, 2):
        write_report(
            checked_folder,
            tiny_run.predictor,
            evaluation,
            examples=examples,
            num_samples=num_samples,
        )
        assert checked_folder / "report.html" in check_folder(checked_folder)


def test_equal_runs_have_equal_bytes(reverse_files, tmp_path):
    for name in ("a", "b"):
        train(reverse_files.request(tmp_path / name, "train.max_steps=2"))
    assert (tmp_path / "a" / WEIGHTS).read_bytes() == (tmp_path / "b" / WEIGHTS).read_bytes()


def interrupted_run(files, out, interrupted_at):
    request = files.request(out, "train.max_steps=6", "train.validate_every=2")
    train(request, display=interrupted_at(4))
    return replace(request, is_resumed=True, recipe=None, settings=())


@pytest.mark.parametrize("name", [CONFIG, SOURCE, TEST, *LOGS])
def test_damaged_file_of_a_resumed_run_is_named(reverse_files, interrupted_at, tmp_path, name):
    request = interrupted_run(reverse_files, tmp_path, interrupted_at)
    flip(tmp_path / name)
    with pytest.raises(CheckpointError, match=f"is damaged: {re.escape(name)} differs from its"):
        train(request)


@pytest.mark.parametrize("name", ["averages", "tensorboard", "resume.old", "resume.part"])
@pytest.mark.parametrize("is_resumed", [True, False])
def test_folder_that_is_a_link_is_refused_before_training_writes_to_it(
    reverse_files, tiny_run, tmp_path, name, is_resumed
):
    run = shutil.copytree(tiny_run.folder, tmp_path / "run")
    shutil.rmtree(run / name, ignore_errors=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / ".a.part").touch()
    (run / name).symlink_to("../mine")
    request = replace(reverse_files.request(run), is_resumed=is_resumed, is_forced=not is_resumed)
    request = replace(request, recipe=None, settings=()) if is_resumed else request
    with pytest.raises(CheckpointError, match=rf"{re.escape(name)} must be a folder of the run"):
        train(request)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == [".a.part"]
    assert (run / CONFIG).exists()


@pytest.mark.parametrize("damage", [flip, os.unlink])
def test_damaged_best_weights_of_a_resumed_run_are_written_again(
    reverse_files, interrupted_at, tmp_path, damage, caplog
):
    whole = train(
        reverse_files.request(tmp_path / "whole", "train.max_steps=6", "train.validate_every=2")
    )
    request = interrupted_run(reverse_files, tmp_path / "parts", interrupted_at)
    damage(tmp_path / "parts" / WEIGHTS)
    train(request)
    assert "The next validation writes it again." in caplog.text
    check_folder(tmp_path / "parts")
    ours, theirs = (read_weights(f / WEIGHTS) for f in (tmp_path / "parts", whole.folder))
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())


def test_damaged_training_state_resumes_from_the_one_before(
    reverse_files, interrupted_at, tmp_path, caplog
):
    whole = train(
        reverse_files.request(tmp_path / "whole", "train.max_steps=6", "train.validate_every=2")
    )
    request = interrupted_run(reverse_files, tmp_path / "parts", interrupted_at)
    flip(tmp_path / "parts" / "resume" / "training.safetensors")
    train(request)
    assert (
        "resume is damaged: training.safetensors differs from its checksum. Resuming" in caplog.text
    )
    for folder in ("", "resume"):
        ours, theirs = (
            read_weights(f / folder / WEIGHTS) for f in (tmp_path / "parts", whole.folder)
        )
        assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())


def test_run_of_an_earlier_version_gets_checksums_when_resumed(
    reverse_files, interrupted_at, tmp_path
):
    request = interrupted_run(reverse_files, tmp_path, interrupted_at)
    for path in tmp_path.rglob(CHECKSUMS):
        path.unlink()
    train(request)
    names = {path.name for path in check_folder(tmp_path)}
    assert names >= WRITTEN


@pytest.mark.parametrize("name", [CONFIG, TEST, *LOGS])
def test_enormous_file_without_checksum_is_refused_before_it_is_read(tiny_folder, name):
    os.truncate(tiny_folder / name, 2**42)  # sparse: it takes no space, but hours to read
    with pytest.raises(CheckpointError, match=f"{name} must have at most"):
        prepare_to_resume(tiny_folder)


@pytest.mark.parametrize("size", [0, 100, 2**42])
def test_damaged_weights_of_an_earlier_version_are_written_again(
    reverse_files, interrupted_at, tmp_path, caplog, size
):
    request = interrupted_run(reverse_files, tmp_path, interrupted_at)
    for path in tmp_path.rglob(CHECKSUMS):
        path.unlink()
    os.truncate(tmp_path / WEIGHTS, size)
    train(request)
    assert f"{WEIGHTS} is damaged. The next validation writes it again." in caplog.text
    assert tmp_path / WEIGHTS in check_folder(tmp_path)


def test_files_of_the_user_have_no_checksum(reverse_files, tmp_path):
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    train(reverse_files.request(tmp_path, "train.max_steps=1"))
    (tmp_path / "notes.txt").write_text("changed", encoding="utf-8")
    assert tmp_path / "notes.txt" not in check_folder(tmp_path)


def test_killed_start_with_force_leaves_no_run(checked_folder, tiny_run, monkeypatch):
    """At every file operation: either nothing is left of the old run, or it is no run."""

    def kill(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(tiny_run.predictor, "save", kill)
    with pytest.raises(KeyboardInterrupt):
        initialize_folder(checked_folder, tiny_run.predictor, {})
    assert not {path.name for path in checked_folder.iterdir()} & {CONFIG, WEIGHTS, "resume"}
