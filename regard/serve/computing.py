"""Sources of requests as jobs of a run: checked, uploads decoded, computed in batches."""

import base64
import io
from collections.abc import AsyncIterator, Callable, Hashable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from PIL import Image

from regard.core.config import from_dict, to_dict
from regard.core.tables import with_article
from regard.search.settings import SearchConfig
from regard.search.watching import Watch
from regard.serve.batching import Job
from regard.serve.errors import invalid
from regard.serve.limits import Limits
from regard.serve.routes.schemas import Upload
from regard.serve.runs import ServedRun
from regard.serve.state import ServerState
from regard.tasks.base import Generates
from regard.tasks.prediction import Prediction

Predicted = tuple[Any, list[dict[str, Any]]]
"""A source and its predictions as plain values, which stay together from the batch to the reply."""


@dataclass(frozen=True)
class Asked:
    """Search that a request asks for; requests with equal values are computed together."""

    num_best: int = 1
    search: SearchConfig | None = None
    """None for tasks that do not search."""
    prefix: str = ""


def find_search(
    run: ServedRun,
    overrides: Mapping[str, Any],
    limits: Limits,
    *,
    num_best: int = 1,
    prefix: str = "",
) -> Asked:
    """Return the search that a request asks for, within limits."""
    if num_best > limits.beams:
        raise invalid(f"`num_best` must be at most {limits.beams} here, but is {num_best}.")
    limits.check_sources([prefix])
    task = run.task
    if not isinstance(task, Generates):
        if overrides or prefix:
            raise invalid(
                f"`{'search' if overrides else 'prefix'}` is for models that generate text, but "
                f"the task of '{run.name}' is '{task.recipe.task}'. Leave it out."
            )
        return Asked(num_best)
    search = task.search
    if overrides:
        search = from_dict(SearchConfig, {**to_dict(search), **overrides}, "search")
    if "beams" not in overrides:
        search = search.with_beams(num_best)
    limits.check_search(search, task.search)
    return Asked(num_best, search, prefix)


@asynccontextmanager
async def prepared(
    state: ServerState, run: ServedRun, sources: Sequence[str | Upload]
) -> AsyncIterator[list[Any]]:
    """Check sources and return them as the run reads them; uploads are files during the block.

    A text is never the name of a file, and files are never named by a request.
    """
    texts = [one if isinstance(one, str) else one.text or "" for one in sources]
    state.limits.check_sources(texts)
    modality = run.modality
    for source in sources:
        if isinstance(source, str) != (modality == "text"):
            needed = "a text" if modality == "text" else f"an upload ({modality})"
            given = "text" if isinstance(source, str) else "upload"
            raise invalid(
                f"A source of '{run.name}' must be {needed}, but is {with_article(given)}."
            )
        if isinstance(source, Upload) and (source.text is None) == (modality == "text+image"):
            needed = "needs" if source.text is None else "takes no"
            raise invalid(f"An upload for '{run.name}' {needed} `text`.")
    if modality == "text":
        yield list(sources)
        return
    config = run.task.recipe.data.source
    decoder = config.image.decoder if modality == "text+image" else config.decoder
    with state.uploads.folder() as folder:
        paths = [
            await state.uploads.store(
                source.decode(),
                folder,
                medium="image" if modality == "text+image" else modality,
                read=decoder.read,
            )
            for source in sources
            if isinstance(source, Upload)
        ]
        is_pair = modality == "text+image"
        yield [(text, path) if is_pair else path for text, path in zip(texts, paths, strict=True)]


async def predict(
    run: ServedRun, items: Sequence[Any], asked: Asked, *, watch: Watch | None = None
) -> list[Predicted]:
    """Return the predictions of sources, computed together with those of other requests.

    Args:
        run: The run.
        items: The sources as `prepared` returns them.
        asked: The search.
        watch: Called after each step of the search; the source is then computed alone.
    """
    key: Hashable = ("predict", asked) if watch is None else object()
    job = Job(key, items, partial(_predict, run, asked), watch=watch)
    return await run.batcher.submit(job)


async def compute(
    run: ServedRun, items: Sequence[Any], function: Callable[[list[Any]], Sequence[Any]]
) -> list[Any]:
    """Return the results of a function of sources, computed by the thread of the run."""
    return await run.batcher.submit(Job(object(), items, function))


def _predict(run: ServedRun, asked: Asked, items: list[Any]) -> list[Predicted]:
    task = run.task
    if isinstance(task, Generates):
        found = task.predict(
            items, num_best=asked.num_best, search=asked.search, prefix=asked.prefix
        )
    else:
        found = task.predict(items, num_best=asked.num_best)
    return [
        (item, [to_plain(one) for one in best]) for item, best in zip(items, found, strict=True)
    ]


def to_plain(prediction: Prediction) -> dict[str, Any]:
    """Return a prediction as plain values."""
    values: dict[str, Any] = {
        name: getattr(prediction, name)
        for name in ("text", "log_prob", "tokens", "token_log_probs")
    }
    if prediction.alternatives:
        values["alternatives"] = prediction.alternatives
    if prediction.image is not None:
        file = io.BytesIO()
        Image.fromarray(prediction.image).save(file, "PNG")
        values["image"] = f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
    return values


def source_text(item: Any, modality: str) -> str | None:
    """Return the text of a source for a reply; None for a file."""
    if modality == "text":
        return str(item)
    return str(item[0]) if modality == "text+image" else None
