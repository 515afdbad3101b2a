import os
from pathlib import Path

import pytest
import torch

# Several threads cost more than they bring at these sizes, and their sums vary in the last digit.
torch.set_num_threads(1)

pytest_plugins = ("tests.fixtures.inputs", "tests.fixtures.models", "tests.fixtures.runs")


@pytest.fixture(autouse=True)
def only_device_tests_see_a_gpu(request, monkeypatch):
    """All others are the same on every machine."""
    if request.node.get_closest_marker("device") is None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.fixture(scope="session")
def data_folder():
    """The folder with data sets that do not ship with the package."""
    if "REGARD_DATA" not in os.environ:
        pytest.skip("REGARD_DATA is not set: the shared data is absent")
    return Path(os.environ["REGARD_DATA"])
