"""State of a server, shared by its routes."""

from dataclasses import dataclass, field
from functools import partial
from typing import cast

from fastapi import Request

from regard.serve.limits import Limits
from regard.serve.metrics import Metrics
from regard.serve.runs import Runs
from regard.serve.trainings.catalog import Trainings
from regard.serve.uploads import Uploads


@dataclass(frozen=True, kw_only=True)
class Access:
    """Conditions of the use of the server."""

    token: str | None = None
    """Token that requests must have; None = no token."""
    origins: tuple[str, ...] = ()
    """Origins of pages that may use the server, beside its own."""
    hosts: tuple[str, ...] | None = None
    """Names under which the server may be addressed; None = any name."""


@dataclass(kw_only=True)
class ServerState:
    """Runs, trainings, limits and metrics of a server."""

    runs: Runs
    trainings: Trainings = field(default_factory=Trainings)
    limits: Limits = field(default_factory=Limits)
    access: Access = field(default_factory=Access)
    metrics: Metrics = field(default_factory=Metrics)
    logs_requests: bool = False
    """Whether requests are logged."""
    is_draining: bool = False
    """Whether the server completes its requests before it ends."""

    def __post_init__(self) -> None:
        self.uploads = Uploads(self.limits)
        for run in self.runs.ready.values():
            self.metrics.watch_queue(run.name, partial(getattr, run.batcher, "num_waiting"))

    def close(self) -> None:
        """Complete all requests that wait, and delete all files."""
        self.runs.close()
        self.uploads.close()


def state_of(request: Request) -> ServerState:
    """Return the state of the server of a request."""
    return cast(ServerState, request.app.state.server)
