"""Options and fixtures of all tests."""

import os
from pathlib import Path

import pytest
import torch

from tests.all_pairs import find_uses

# At these sizes one thread is faster than several, and sums do not depend on their number.
torch.set_num_threads(1)

pytest_plugins = (
    "tests.fixtures.inputs",
    "tests.fixtures.models",
    "tests.fixtures.progress",
    "tests.fixtures.runs",
    "tests.fixtures.tasks",
)


def pytest_addoption(parser):
    parser.addoption(
        "--full-matrix",
        action="store_true",
        help="Run every row of a test matrix, not only rows that contain every pair of choices.",
    )


def pytest_generate_tests(metafunc):
    """Provide the arguments of tests with the mark `matrix`: see tests/all_pairs.py."""
    for use in find_uses(metafunc):
        cases = use.cases(is_full=metafunc.config.getoption("--full-matrix"))
        # Cases in module scope let tests of a module share what they build for a case.
        metafunc.parametrize(use.names, cases.values(), ids=cases, scope="module")


@pytest.fixture(autouse=True)
def hide_gpu(request, monkeypatch):
    """Hide the GPU from all tests but those of devices, so that results are equal everywhere."""
    if request.node.get_closest_marker("device") is None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.fixture(scope="session", autouse=True)
def without_fsync():
    """Do not wait for the disk: only a power failure loses what was written, not a kill."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


@pytest.fixture(scope="session")
def data_folder():
    """Return the folder with data sets that are not part of the package."""
    if "REGARD_DATA" not in os.environ:
        pytest.skip("REGARD_DATA is not set: the shared data is absent")
    return Path(os.environ["REGARD_DATA"])
