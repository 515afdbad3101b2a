"""Errors of requests: status, one sentence, and the shapes in which clients expect them."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass
class RequestError(Exception):
    """A request that is refused or cannot be answered."""

    status: int
    """Status code of HTTP."""
    message: str
    """One sentence for a person."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers of the reply, such as `Retry-After`."""

    def __post_init__(self) -> None:
        super().__init__(self.message)


def invalid(message: str) -> RequestError:
    """Return the error for a request whose content breaks a rule."""
    return RequestError(422, message)


def busy(message: str, seconds: int) -> RequestError:
    """Return the error for a request that finds the queue full.

    Args:
        message: The limit that is reached.
        seconds: Time after which to try again.
    """
    return RequestError(429, message, {"Retry-After": str(seconds)})


def gone() -> RequestError:
    """Return the error for a request whose client has left; nobody reads the reply."""
    return RequestError(499, "The client has closed the connection.")


def too_slow(seconds: float) -> RequestError:
    """Return the error for a request that has taken longer than it may."""
    return RequestError(408, f"The request took more than {seconds:g} seconds. Send a smaller one.")
