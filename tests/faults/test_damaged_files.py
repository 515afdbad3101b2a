"""A damaged file is named, or makes no difference: it never changes a result silently."""

import os
import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from regard.core.errors import CheckpointError, RegardError
from regard.runs.folder import (
    LOGS,
    METRICS,
    PREDICTIONS,
    REPORT,
    TEST,
    WEIGHTS,
    check_folder,
    load,
)
from regard.runs.train import train
from regard.training.checkpoint import read_weights

SOURCES = ["a b c", "e d", "b a c d"]
UNOPENED = (METRICS, PREDICTIONS, REPORT, TEST, *LOGS)


def zero(path):
    """Overwrite up to 4 KB in the middle of a file by zeros, as a lost block of a disk."""
    content = path.read_bytes()
    start = max(0, len(content) // 2 - 2048)
    path.write_bytes(
        content[:start] + bytes(min(4096, len(content) - start)) + content[start + 4096 :]
    )


def change_byte(path):
    content = bytearray(path.read_bytes())
    generator = random.Random(len(content))
    content[generator.randrange(len(content))] ^= generator.randrange(1, 256)
    path.write_bytes(content)


def replace_by(make):
    def replace_file(path):
        path.unlink()
        make(path)

    return replace_file


DAMAGES = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "zeroed": zero,
    "byte": change_byte,
    "empty": lambda path: path.write_bytes(b""),
    "missing": Path.unlink,
    "folder": replace_by(Path.mkdir),
    "dangling": replace_by(lambda path: path.symlink_to("absent")),
    "linked": replace_by(lambda path: path.symlink_to(__file__)),
    "device": replace_by(lambda path: path.symlink_to("/dev/zero")),
    "pipe": replace_by(os.mkfifo),
}


def files_of(run):
    return sorted(
        str(path.relative_to(run))
        for path in run.rglob("*")
        if path.is_file() and path.relative_to(run).parts[0] != "tensorboard"
    )


@pytest.mark.parametrize("damage", DAMAGES)
def test_every_damage_is_found_by_check_and_when_the_run_is_opened(case, tmp_path, damage):
    expected = load(case.expected, "cpu").translate(SOURCES)
    names = files_of(case.expected)
    assert len(names) > 20
    for number, name in enumerate(names):
        run = shutil.copytree(case.expected, tmp_path / f"{number}")
        DAMAGES[damage](run / name)
        if damage == "missing" and Path(name).name == "checksums.json":
            continue  # then a folder is not checked
        with pytest.raises(CheckpointError, match=Path(name).name):
            check_folder(run)
        if name in UNOPENED or "/" in name:
            assert load(run, "cpu").translate(SOURCES) == expected
        else:
            with pytest.raises(CheckpointError, match=name):
                load(run, "cpu")


def resume_damaged(case, interrupted, folder, *, name, damage):
    """Resume a run with a damaged file: it is refused with a message, or gives the same result.

    The best weights before the damage are lost, with a message; training itself continues.
    """
    run = shutil.copytree(interrupted, folder)
    DAMAGES[damage](run / name)
    request = replace(case.request(run), is_resumed=True, recipe=None, settings=())
    try:
        train(request)
    except RegardError as error:
        assert "\n" not in str(error)
        is_no_run = name == "config.json" and "holds no run to resume" in str(error)
        assert Path(name).name in str(error) or is_no_run
        return "refused"
    if name == WEIGHTS:
        check_folder(run)
        expected = read_weights(case.expected / "resume" / WEIGHTS)
        for tensor, value in read_weights(run / "resume" / WEIGHTS).items():
            assert torch.equal(value, expected[tensor])
        return "retrained"
    case.check(run)
    return "equal"


@pytest.fixture(scope="module")
def interrupted(case, interrupted_at, tmp_path_factory):
    """The run after five of eight steps."""
    out = tmp_path_factory.mktemp("runs") / "interrupted"
    torch.manual_seed(0)
    assert train(case.request(out), display=interrupted_at(5)).evaluation is None
    return out


@pytest.mark.parametrize(
    ("name", "damage", "outcome"),
    [
        ("config.json", "byte", "refused"),
        ("source.tokenizer.json", "folder", "refused"),
        ("model.safetensors", "byte", "retrained"),
        ("model.safetensors", "missing", "retrained"),
        ("model.safetensors", "folder", "refused"),
        ("resume/training.safetensors", "byte", "equal"),
        ("resume/training.json", "pipe", "equal"),
        ("averages/step-000000004.safetensors", "zeroed", "equal"),
    ],
)
def test_run_with_a_damaged_file_is_refused_or_resumes_to_identical_tensors(
    case, interrupted, tmp_path, name, outcome, damage
):
    found = resume_damaged(case, interrupted, tmp_path / "run", name=name, damage=damage)
    assert found == outcome


@pytest.mark.faults
@pytest.mark.parametrize("damage", DAMAGES)
def test_every_damage_is_named_or_harmless_when_the_run_is_resumed(
    case, interrupted, tmp_path, damage
):
    outcomes = [
        resume_damaged(case, interrupted, tmp_path / f"{number}", name=name, damage=damage)
        for number, name in enumerate(files_of(interrupted))
    ]
    assert "equal" in outcomes
