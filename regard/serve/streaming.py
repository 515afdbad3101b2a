"""Server-sent events of a search: the most likely target so far, then the result."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

from regard.core.errors import RegardError
from regard.data.text.tokenizers import Tokenizer
from regard.search.watching import ReadBest
from regard.serve.bodies import finite
from regard.serve.computing import Asked, Predicted, predict, prepared, source_text
from regard.serve.errors import RequestError, too_slow
from regard.serve.routes.schemas import Upload
from regard.serve.runs import ServedRun
from regard.serve.state import ServerState
from regard.tasks.decoding.alternatives import HasScorers


async def stream_events(
    state: ServerState, run: ServedRun, source: str | Upload, *, asked: Asked
) -> AsyncIterator[str]:
    """Yield the events of one source.

    The event `token` has the most likely hypothesis that is still searched, the event `result` the
    same predictions as without a stream; in beam search they may differ.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[tuple[int, ...] | None] = asyncio.Queue()

    def watch(read: ReadBest) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, read())

    async with prepared(state, run, [source]) as items:
        yield ": the search starts\n\n"
        search = asyncio.ensure_future(predict(run, items, asked, watch=watch))
        search.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            async with asyncio.timeout(state.limits.seconds):
                while (tokens := await queue.get()) is not None:
                    if tokens:  # none after the end of the search
                        yield _event("token", _describe(run, tokens))
                yield _event("result", _result(run, await search))
        except TimeoutError:
            yield _event("error", {"error": too_slow(state.limits.seconds).message})
        except RequestError as error:
            yield _event("error", {"error": error.message})
        except RegardError as error:
            yield _event("error", {"error": state.uploads.clean(str(error))})
        finally:
            search.cancel()


def _describe(run: ServedRun, ids: tuple[int, ...]) -> dict[str, Any]:
    task = run.task
    assert isinstance(task, HasScorers)
    tokenizer = task.output_tokenizer
    return {"text": _write(tokenizer, ids), "tokens": tokenizer.tokens(ids)}


def _write(tokenizer: Tokenizer, ids: Iterable[int]) -> str:
    return tokenizer.decode(token for token in ids if token != tokenizer.eos)


def _result(run: ServedRun, predicted: list[Predicted]) -> dict[str, Any]:
    ((item, predictions),) = predicted
    result = {"source": source_text(item, run.modality), "predictions": predictions}
    return {"model": run.name, "results": [result]}


def _event(name: str, data: dict[str, Any]) -> str:
    # JSON escapes line breaks, so the data are one line.
    return f"event: {name}\ndata: {json.dumps(finite(data))}\n\n"
