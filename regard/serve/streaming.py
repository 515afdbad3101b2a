"""Server-sent events of a search: the most likely target so far, then the result."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from fastapi.responses import StreamingResponse

from regard.core.errors import RegardError
from regard.data.text.tokenizers import Tokenizer
from regard.search.watching import ReadBest, Watch
from regard.serve.bodies import finite
from regard.serve.computing import prepared
from regard.serve.errors import RequestError, too_slow
from regard.serve.routes.schemas import Upload
from regard.serve.runs import ServedRun
from regard.serve.state import ServerState
from regard.tasks.decoding.alternatives import HasScorers

Describe = Callable[[list[Any], tuple[int, ...]], dict[str, Any]]
"""Prepared sources and the tokens of a hypothesis → the data of an event."""


class Search(Protocol):
    """Function that searches for prepared sources and returns the data of the result."""

    def __call__(self, *, items: list[Any], watch: Watch) -> Awaitable[dict[str, Any]]:
        """Search, and call `watch` after each step."""


async def event_stream(
    state: ServerState,
    run: ServedRun,
    source: str | Upload,
    *,
    describe: Describe,
    search: Search,
) -> StreamingResponse:
    """Return the reply with the events of one source; raise if the source has a fault."""
    events = _events(state, run, source, describe=describe, search=search)
    # Faults of the source are reported before the stream starts.
    first = await anext(events)
    return StreamingResponse(_chain(first, events), media_type="text/event-stream")


async def _events(
    state: ServerState,
    run: ServedRun,
    source: str | Upload,
    *,
    describe: Describe,
    search: Search,
) -> AsyncIterator[str]:
    """Yield the events of one source.

    The event `token` has the most likely hypothesis that is still searched, the event `result` the
    same predictions as without a stream; in beam search they may differ.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

    async with prepared(state, run, [source]) as items:

        def watch(read: ReadBest) -> None:
            if tokens := read():  # none after the end of the search
                loop.call_soon_threadsafe(queue.put_nowait, describe(items, tokens))

        yield ": the search starts\n\n"
        found = asyncio.ensure_future(search(items=items, watch=watch))
        found.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            async with asyncio.timeout(state.limits.seconds):
                while (described := await queue.get()) is not None:
                    yield _event("token", described)
                yield _event("result", await found)
        except TimeoutError:
            yield _event("error", {"error": too_slow(state.limits.seconds).message})
        except RequestError as error:
            yield _event("error", {"error": error.message})
        except RegardError as error:
            yield _event("error", {"error": state.uploads.clean(str(error))})
        finally:
            found.cancel()


def describe_tokens(run: ServedRun, ids: tuple[int, ...]) -> dict[str, Any]:
    """Return the text and the tokens of a hypothesis."""
    task = run.task
    assert isinstance(task, HasScorers)
    tokenizer = task.output_tokenizer
    return {"text": _write(tokenizer, ids), "tokens": tokenizer.tokens(ids)}


class Throttle:
    """Limits the share of time that repeated work takes.

    Args:
        share: The largest share, from 0 to 1.
    """

    def __init__(self, share: float) -> None:
        self._share, self._next = share, 0.0

    def is_due(self) -> bool:
        """Return whether the work may be done again."""
        return time.perf_counter() >= self._next

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """Measure the time of the work in the block."""
        started = time.perf_counter()
        yield
        ended = time.perf_counter()
        self._next = ended + (ended - started) * (1 / self._share - 1)


def _write(tokenizer: Tokenizer, ids: Iterable[int]) -> str:
    return tokenizer.decode(token for token in ids if token != tokenizer.eos)


def _event(name: str, data: dict[str, Any]) -> str:
    # JSON escapes line breaks, so the data are one line.
    return f"event: {name}\ndata: {json.dumps(finite(data))}\n\n"


async def _chain(first: str, others: AsyncIterator[str]) -> AsyncIterator[str]:
    yield first
    async for event in others:
        yield event
