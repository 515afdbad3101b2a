"""The process of a server: address, signals and the end of requests in progress."""

import asyncio
import logging
import math
import os
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import uvicorn

from regard.core.errors import ConfigError
from regard.core.files import allow_open_files
from regard.core.logging import logger
from regard.serve.app import build_app
from regard.serve.limits import Limits
from regard.serve.metrics import Metrics
from regard.serve.protocol import limit_head
from regard.serve.runs import Runs, find_folders, load_runs
from regard.serve.security import LOOPBACK, check_host, check_origins, read_token
from regard.serve.state import Access, ServerState
from regard.serve.trainings.catalog import Trainings, check_roots

DRAIN_SECONDS = 0.5
"""Time after SIGTERM in which new requests are still answered, with the end of their connection: a
client may have sent one before it learns that the server stops."""


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """Options of `regard serve` and `regard watch`."""

    runs: Sequence[str] = ()
    """Run folders, each perhaps with a name: `en-de=runs/mine`."""
    trainings: Sequence[Path] = ()
    """Further run folders, or folders of runs, whose trainings are followed without their models.
    """
    host: str = "127.0.0.1"
    port: int = 8000
    """Port; 0 = any that is free."""
    token_file: Path | None = None
    is_insecure: bool = False
    """Whether other machines may use the server without a token."""
    origins: tuple[str, ...] = ()
    """Origins of pages that may use the server."""
    limits: Limits = field(default_factory=Limits)
    max_batch: int | None = None
    """Maximum number of sources in a batch; by the number of beams if not given."""
    max_connections: int = 4_096
    logs_requests: bool = False
    opens_page: bool = False
    """Whether to open the page in the browser."""
    device: str = "auto"


def serve(options: ServeOptions) -> None:
    """Serve runs and trainings until a signal; requests that were accepted are completed."""
    check_roots(options.trainings)
    token = read_token(options.token_file)
    check_origins(options.origins)
    check_host(options.host, has_token=token is not None, is_insecure=options.is_insecure)
    allow_open_files()
    with _listen(options.host, options.port) as bound:
        state = _load(options, token)
        host, port = bound.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        logger.info("%s at http://%s:%d. Ctrl-C ends.", _describe(options, state), shown, port)
        if options.opens_page:
            # Its connections wait until the server runs.
            _open_browser(f"http://{shown}:{port}")
        DrainingServer(_configure(options, state), state).run(sockets=[bound])


def _open_browser(url: str) -> None:
    """Open a page, unless the only browser would take over the terminal."""
    screens = (os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    if sys.platform in ("darwin", "win32") or any(screens):
        webbrowser.open(url)


def _describe(options: ServeOptions, state: ServerState) -> str:
    """Return what is served."""
    if not options.runs:
        return f"Trainings of {', '.join(map(str, options.trainings))}"
    return f"Serving {', '.join(state.runs.ready)}"


def _load(options: ServeOptions, token: str | None) -> ServerState:
    """Load the runs."""
    metrics = Metrics()
    runs = _load_models(options, metrics) if options.runs else Runs()
    # A page can make a name of its own point to this machine, but it cannot change the header Host.
    hosts = LOOPBACK if options.host in LOOPBACK else None
    state = ServerState(
        runs=runs,
        trainings=Trainings(find_folders(options.runs), options.trainings),
        limits=options.limits,
        access=Access(token=token, origins=options.origins, hosts=hosts),
        metrics=metrics,
        logs_requests=options.logs_requests,
    )
    _silence(state)
    return state


def _load_models(options: ServeOptions, metrics: Metrics) -> Runs:
    return load_runs(
        options.runs,
        device=options.device,
        max_batch=options.max_batch,
        max_waiting=options.limits.queue,
        # A request that would wait longer is refused at once.
        max_seconds=options.limits.seconds / 2,
        report=metrics.receiver,
    )


def _configure(options: ServeOptions, state: ServerState) -> uvicorn.Config:
    return uvicorn.Config(
        build_app(state),
        access_log=False,
        log_config=None,
        server_header=False,
        loop="asyncio",
        http=limit_head(options.limits.seconds),
        ws="none",
        timeout_keep_alive=75,
        timeout_graceful_shutdown=math.ceil(options.limits.seconds) + 5,
        limit_concurrency=options.max_connections,
        h11_max_incomplete_event_size=65_536,
        backlog=2_048,
    )


class DrainingServer(uvicorn.Server):
    """Server that answers for a moment after a signal, and then completes what it has accepted."""

    def __init__(self, config: uvicorn.Config, state: ServerState) -> None:
        super().__init__(config)
        self._state = state

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop; a second Ctrl-C ends at once."""
        if self._state.is_draining:
            self.should_exit = True
            self.force_exit = sig == signal.SIGINT
            return
        self._state.is_draining = True
        logger.info("Stopping: requests in progress are completed.")
        timer = threading.Timer(DRAIN_SECONDS, self._stop)
        timer.daemon = True
        timer.start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Refuse connections, read what others have sent already, and complete all requests."""
        for server in self.servers:
            server.close()
        for bound in sockets or ():
            bound.close()
        await asyncio.sleep(DRAIN_SECONDS)
        await super().shutdown(sockets)
        logger.info("Stopped after %s requests.", f"{self._state.metrics.num_replies:,}")

    def _stop(self) -> None:
        self.should_exit = True


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sends each part of a reply at once (TCP_NODELAY). Otherwise
    # the second part waits for the client's delayed acknowledgement of the first, 40 ms.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(2_048)
    except (OSError, OverflowError) as error:
        bound.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(
            f"The server cannot listen on {host}, port {port}: {reason}. Choose others with "
            "`--host` and `--port`."
        ) from None
    bound.setblocking(False)
    return bound


def _silence(state: ServerState) -> None:
    """Log nothing that may contain a part of a request, unless requests are logged."""
    # Warnings of models, such as those of unknown words, come from the threads of runs.
    if not state.logs_requests:
        main = threading.get_ident()
        logger.addFilter(lambda record: record.thread == main)
    # Faults are logged by `reply_to_bug`; the reader of forms logs bytes of requests.
    for name in ("uvicorn.error", "python_multipart"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # asyncio warns of each client that leaves while its reply is sent.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
