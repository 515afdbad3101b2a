"""A process that is killed at any moment loses no more than the steps since the last checkpoint."""

import os
import random
import signal
import time

import pytest

from tests.faults.harness import FINISHED, count_operations, run_killed, start_child, wait_for

NUM_QUICK = 8
"""Number of operations that are tested in `make test`."""


def kill_and_resume(case, folder, numbers):
    for number in numbers:
        out, log = folder / f"{number}", folder / f"{number}.log"
        code = run_killed(case.start_or_resume, out, at=number, log=log)
        assert code == -signal.SIGKILL, log.read_text()
        case.start_or_resume(out)
        case.check(out)


def test_kill_between_some_file_operations_resumes_to_identical_tensors(
    case, num_operations, tmp_path
):
    generator = random.Random(num_operations)
    kill_and_resume(case, tmp_path, generator.sample(range(num_operations), NUM_QUICK))


@pytest.mark.faults
def test_kill_between_all_file_operations_resumes_to_identical_tensors(
    case, num_operations, tmp_path
):
    assert num_operations > 200
    kill_and_resume(case, tmp_path, range(num_operations))


@pytest.mark.faults
def test_kill_between_file_operations_of_a_resumed_run(case, tmp_path):
    """Also a second kill, while the run continues after the first."""
    out = tmp_path / "counted"
    total = count_operations(case.start_or_resume, out, log=tmp_path / "log")
    generator = random.Random(1)
    for attempt in range(40):
        out, log = tmp_path / f"{attempt}", tmp_path / f"{attempt}.log"
        codes = []
        while FINISHED not in codes and len(codes) < 5:
            number = generator.randrange(total)
            codes.append(run_killed(case.start_or_resume, out, at=number, log=log))
        assert set(codes) <= {FINISHED, -signal.SIGKILL}, log.read_text()
        if FINISHED not in codes:
            case.start_or_resume(out)
        case.check(out)


def kill_at_random_moments(case, folder, *, num_runs, seed):
    generator = random.Random(seed)
    started = time.monotonic()
    assert (
        wait_for(start_child(case.start_or_resume, folder / "timed", log=folder / "log"))
        == FINISHED
    )
    seconds = time.monotonic() - started
    for number in range(num_runs):
        out, log = folder / f"{number}", folder / f"{number}.log"
        for _ in range(3):
            child = start_child(case.start_or_resume, out, log=log)
            time.sleep(generator.uniform(0, seconds))
            os.kill(child, signal.SIGKILL)
            assert wait_for(child) in (FINISHED, -signal.SIGKILL), log.read_text()
        case.start_or_resume(out)
        case.check(out)


def test_kill_at_a_random_moment_resumes_to_identical_tensors(case, tmp_path):
    kill_at_random_moments(case, tmp_path, num_runs=1, seed=0)


@pytest.mark.faults
def test_kills_at_many_random_moments_resume_to_identical_tensors(case, tmp_path):
    kill_at_random_moments(case, tmp_path, num_runs=30, seed=time.time_ns())
