"""Watching of searches: `with watching(function):` calls a function after each step.

The function may raise an exception to end the search. A watched search has the same result. Other
long computations call the function by `check_watch`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

ReadBest: TypeAlias = Callable[[], tuple[int, ...]]
"""Function that returns the tokens of the most likely hypothesis of the first sentence; computed
only when it is called."""

Watch: TypeAlias = Callable[[ReadBest], None]

_WATCH: ContextVar[Watch | None] = ContextVar("watch", default=None)


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """Call a function after each step of the searches inside the block."""
    token = _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.reset(token)


def current_watch() -> Watch | None:
    """Return the function of the block of `watching`, None outside."""
    return _WATCH.get()


def check_watch() -> None:
    """Call the function of the block of `watching` for a computation that has no hypotheses."""
    watch = current_watch()
    if watch is not None:
        watch(lambda: ())
