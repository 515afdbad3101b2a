"""A full disk ends training with a message; with free space, it continues to the same result."""

import random

import pytest

from regard.runs.saved.config import CONFIG
from regard.training.checkpoint import find_training
from tests.faults.harness import FINISHED, REFUSED, run_on_full_disk


def fill_and_resume(case, folder, numbers):
    for number in numbers:
        out, log = folder / f"{number}", folder / f"{number}.log"
        code = run_on_full_disk(case.start_or_resume, out, after=number, log=log)
        assert code in (REFUSED, FINISHED), log.read_text()
        left = [path.name for path in out.rglob("*") if path.name.endswith(".part")]
        assert left == []
        if (out / CONFIG).exists() and (out / "resume").exists():
            find_training(out)
        case.start_or_resume(out)
        case.check(out)


def test_disk_that_is_full_from_some_operations_on(case, num_operations, tmp_path):
    generator = random.Random(num_operations)
    fill_and_resume(case, tmp_path, generator.sample(range(num_operations), 5))


@pytest.mark.faults
def test_disk_that_is_full_from_each_operation_on(case, num_operations, tmp_path):
    fill_and_resume(case, tmp_path, range(0, num_operations))
