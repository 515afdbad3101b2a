"""Several trainings at once, each in a process of its own, and a report of each."""

import logging
import multiprocessing
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess

import torch

from regard.core.device import find_device, num_cores
from regard.core.errors import RegardError
from regard.core.logging import log_to, logger
from regard.runs.report import write_report
from regard.runs.request import Request
from regard.runs.train import train
from regard.training.logs import Display, LineDisplay
from regard.training.signals import Interrupts

INTERRUPTED = 130
"""Exit code of a process whose training was stopped from outside."""


def train_together(requests: Sequence[Request]) -> bool:
    """Train all requests and write their reports; tell whether every one came to its end.

    Side by side on the cores of a machine: small models cannot keep two cores busy with one
    training, but two trainings can. One after the other where there is a GPU or a single core.
    """
    num_threads = num_cores() // max(1, len(requests))
    if any(find_device(request.device).type == "cuda" for request in requests) or not num_threads:
        return all(learn(request) for request in requests)
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=_learn_alone, args=(request, num_threads), name=request.out.name)
        for request in requests
    ]
    with Interrupts():
        try:
            with _deaf():
                for process in processes:
                    process.start()
            _await_all(processes)
        except KeyboardInterrupt:
            return False
        finally:
            _stop(processes)
    for process in processes:
        if process.exitcode not in (0, INTERRUPTED, -signal.SIGTERM):
            raise RegardError(
                f"Training {process.name} failed with exit code {process.exitcode}; what it said "
                "stands above. The same command goes on where it stopped."
            )
    return all(process.exitcode == 0 for process in processes)


def learn(request: Request, *, display: Display | None = None) -> bool:
    """Train one request and write its report; tell whether it came to its end."""
    trained = train(request, display=display)
    if trained.evaluation is None:
        return False
    title = f"{request.out.name}: {' '.join(request.data)}"
    write_report(trained.folder, trained.predictor, trained.evaluation, title=title)
    return True


def _learn_alone(request: Request, num_threads: int) -> None:
    """Train in this process, which has nothing else to do."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(processName)s: %(message)s"))
    log_to(handler)
    torch.set_num_threads(num_threads)
    try:
        is_whole = learn(request, display=LineDisplay())
    except RegardError as error:
        logger.error("%s", error)
        sys.exit(2)
    if not is_whole:
        sys.exit(INTERRUPTED)


@contextmanager
def _deaf() -> Iterator[None]:
    """Start processes that do not hear Ctrl-C until their training can stop well."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _await_all(processes: Sequence[SpawnProcess]) -> None:
    """Wait until all have ended, or one has ended badly."""
    while running := [process for process in processes if process.is_alive()]:
        # Looked at after who runs: one that ended in between would be waited for by nobody.
        if any(process.exitcode for process in processes):
            return
        wait([process.sentinel for process in running])


def _stop(processes: Sequence[SpawnProcess]) -> None:
    """Ask those that still run to stop, which training does well, and wait for them."""
    for process in processes:
        if process.is_alive():
            process.terminate()
    for process in processes:
        if process.pid is not None:
            process.join()
