"""Training of several models in parallel, each in its own process, with a report of each."""

import logging
import multiprocessing
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess

from regard.core.device import find_device, set_threads
from regard.core.errors import RegardError
from regard.core.logging import log_to, logger
from regard.core.threads import num_cores
from regard.runs.request import Request
from regard.runs.train import train
from regard.training.loggers.display import LineDisplay
from regard.training.loggers.logger import Logger
from regard.training.signals import Interrupts

INTERRUPTED = 130
"""Exit code of a process whose training was interrupted."""


def train_in_parallel(requests: Sequence[Request]) -> bool:
    """Train all requests and write their reports; return whether all finished.

    On CPUs, trainings run in parallel: one small model cannot use several cores fully. With a
    GPU or a single core, they run one after the other.
    """
    num_threads = num_cores() // max(1, len(requests))
    if any(find_device(request.device).type != "cpu" for request in requests) or not num_threads:
        return all(train_and_report(request) for request in requests)
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(
            target=_train_in_process, args=(request, num_threads), name=request.out.name
        )
        for request in requests
    ]
    with Interrupts():
        try:
            with _ignore_interrupts():
                for process in processes:
                    process.start()
            _wait_for_all(processes)
        except KeyboardInterrupt:
            return False
        finally:
            _stop(processes)
    for process in processes:
        if process.exitcode not in (0, INTERRUPTED, -signal.SIGTERM):
            raise RegardError(
                f"Training {process.name} failed with exit code {process.exitcode}; its messages "
                "are above. Run the same command to resume."
            )
    return all(process.exitcode == 0 for process in processes)


def train_and_report(request: Request, *, display: Logger | None = None) -> bool:
    """Train one request, which writes its report; return whether training finished."""
    return train(request, display=display).evaluation is not None


def _train_in_process(request: Request, num_threads: int) -> None:
    """Train one request as the only work of this process."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(processName)s: %(message)s"))
    log_to(handler)
    set_threads(num_threads)
    try:
        is_finished = train_and_report(request, display=LineDisplay())
    except RegardError as error:
        logger.error("%s", error)
        sys.exit(2)
    if not is_finished:
        sys.exit(INTERRUPTED)


@contextmanager
def _ignore_interrupts() -> Iterator[None]:
    """Let new processes ignore Ctrl-C until their training handles it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _wait_for_all(processes: Sequence[SpawnProcess]) -> None:
    """Wait until all processes have ended, or one has failed."""
    while running := [process for process in processes if process.is_alive()]:
        # Check exit codes after `is_alive`: a process may fail between the two.
        if any(process.exitcode for process in processes):
            return
        wait([process.sentinel for process in running])


def _stop(processes: Sequence[SpawnProcess]) -> None:
    """Terminate running processes, which lets training save a checkpoint, and wait for them."""
    for process in processes:
        if process.is_alive():
            process.terminate()
    for process in processes:
        if process.pid is not None:
            process.join()
