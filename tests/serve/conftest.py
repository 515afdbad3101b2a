"""Servers of tiny runs: in this process, and in a process of their own."""

import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest
from fastapi.testclient import TestClient

from regard.serve.app import build_app
from regard.serve.limits import Limits
from regard.serve.metrics import Metrics
from regard.serve.runs import find_folders, load_runs
from regard.serve.state import Access, ServerState
from regard.serve.trainings.catalog import Trainings

LIMITS = Limits(sentences=8, characters=200, beams=8, queue=32, seconds=20.0, body=200_000)


@contextmanager
def client_of(*runs, limits=LIMITS, access=None, max_batch=8, **options):
    """Yield a client of a server in this process."""
    metrics = Metrics()
    loaded = load_runs(
        [str(run) for run in runs],
        device="cpu",
        max_batch=max_batch,
        max_waiting=limits.queue,
        report=metrics.receiver,
    )
    state = ServerState(
        runs=loaded,
        trainings=Trainings(find_folders(map(str, runs))),
        limits=limits,
        access=access or Access(),
        metrics=metrics,
        **options,
    )
    # Faults of the server raise in the test.
    with TestClient(build_app(state)) as client:
        client.state = state
        yield client


@pytest.fixture(scope="session")
def served_runs(tiny_run, tiny_transformer_run):
    """Arguments of a server with two runs."""
    return (f"en-de={tiny_run.folder}", f"second={tiny_transformer_run.folder}")


@pytest.fixture(scope="session")
def client(served_runs):
    """A client of a server with two runs, shared by all."""
    with client_of(*served_runs) as one:
        yield one


@pytest.fixture
def serving():
    """Function that starts a server in this process, for the time of a block."""
    return client_of


class Process:
    """A server in a process of its own."""

    def __init__(self, arguments, command="serve"):
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        device = ["--device", "cpu"] if command == "serve" else []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "regard", command, *arguments, "--port", "0", *device],
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.log = []
        for line in self.process.stderr:
            self.log.append(line)
            if found := re.search(r"(http://\S+:\d+)\.", line):
                self.url = found[1]
                break
        else:
            raise AssertionError("".join(self.log))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        self.log.extend(self.process.stderr)

    def stop(self):
        """Send SIGTERM and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        self._reader.join(10)
        return code


@contextmanager
def process_of(*arguments, command="serve"):
    """Start a server in a process of its own, for the time of a block."""
    server = Process([str(argument) for argument in arguments], command)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait()
        server._reader.join(30)
        server.process.stderr.close()


@pytest.fixture(scope="session")
def live(served_runs):
    """A server in a process of its own, shared by all."""
    with process_of(*served_runs) as server:
        yield server


@pytest.fixture
def starting():
    """Function that starts a server in a process of its own, for the time of a block."""
    return process_of
