import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from regard.core.files import read_json
from regard.runs.folder import METRICS, WEIGHTS, check_folder
from regard.runs.train import train
from regard.training.checkpoint import read_weights
from tests.faults.attack import Commands
from tests.faults.harness import count_operations

SETTINGS = (
    "model.encoder.dropout=0.3",
    "train.max_epochs=0",
    "train.max_steps=8",
    "train.validate_every=2",
    "train.average_last=2",
    "train.ema_decay=0.9",
    "train.log_every=2",
)


@dataclass(frozen=True)
class Case:
    """A training of a few steps with all kinds of state, and its result without any fault."""

    files: object
    expected: Path

    def request(self, out):
        return self.files.request(out, *SETTINGS)

    def start_or_resume(self, out):
        """Train like a user who types the command again: resume if there is something to resume."""
        return train(self.request(out).resume_if_started())

    def check(self, out):
        """Assert that a run is complete and equal to the one without faults."""
        check_folder(out)
        for folder in ("", "resume"):
            ours, theirs = (read_weights(run / folder / WEIGHTS) for run in (out, self.expected))
            assert ours.keys() == theirs.keys()
            for name, tensor in ours.items():
                assert torch.equal(tensor, theirs[name]), name
        ours, theirs = (read_json(run / METRICS) for run in (out, self.expected))
        assert ours["test"]["scores"] == theirs["test"]["scores"]
        hidden = [path.name for path in out.rglob("*") if path.name.startswith(".")]
        assert hidden == []
        assert not {"resume.part", "resume.discarded"} & {path.name for path in out.iterdir()}


@pytest.fixture(scope="session")
def case(reverse_files, tmp_path_factory):
    """The training that all tests disturb."""
    case = Case(reverse_files, tmp_path_factory.mktemp("runs") / "expected")
    train(case.request(case.expected))
    return case


@pytest.fixture(scope="session")
def num_operations(case, tmp_path_factory):
    """Number of changes of files that the training makes."""
    folder = tmp_path_factory.mktemp("counted")
    return count_operations(case.start_or_resume, folder / "run", log=folder / "log")


@pytest.fixture(scope="module")
def commands():
    """Commands in a process that is limited in memory and time."""
    worker = Commands()
    yield worker
    worker.close()


@pytest.fixture(scope="module")
def altered(clean, tmp_path_factory):
    """Function that returns a copy of the `clean` folder of a module in which something changed."""
    parent = tmp_path_factory.mktemp("altered")

    def make(change):
        shutil.rmtree(parent, ignore_errors=True)
        folder = shutil.copytree(clean, parent / clean.name)
        change(folder)
        return folder

    return make
