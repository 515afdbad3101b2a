"""Routes under `/v1`: models, predictions and what explains them."""

from collections.abc import Callable
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from regard.data.example import Example
from regard.search.watching import Watch
from regard.serve.bodies import Reply, answer, body_of, read_body
from regard.serve.computing import (
    Asked,
    Predicted,
    compute,
    find_search,
    predict,
    prepared,
    source_text,
    to_plain,
)
from regard.serve.errors import RequestError, invalid
from regard.serve.limits import Limits
from regard.serve.routes import schemas
from regard.serve.routes.schemas import ErrorReply, Upload
from regard.serve.runs import ServedRun
from regard.serve.state import ServerState, state_of
from regard.serve.streaming import describe_tokens, event_stream
from regard.tasks.base import Attends, Generates
from regard.tasks.decoding.alternatives import add_alternatives
from regard.tasks.decoding.beam_tree import find_beam_tree

REFUSED: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorReply, "description": description}
    for status, description in {
        400: "The request cannot be read.",
        401: "The token is missing or wrong.",
        403: "The page that sends the request may not use the server.",
        404: "There is no such model.",
        408: "The request took too long.",
        413: "The request is too large.",
        415: "The content type is not supported.",
        422: "The request breaks a rule.",
        429: "Too many requests are waiting; `Retry-After` has the seconds to wait.",
        503: "The model or the server is not available.",
    }.items()
}
"""Descriptions of replies to requests that are refused."""

router = APIRouter(prefix="/v1", responses=REFUSED, tags=["predictions"])


@router.get("/models", response_model=schemas.ModelsReply)
async def models(request: Request) -> Response:
    """List the runs that are served."""
    runs = state_of(request).runs
    failed = [
        {"id": name, "object": "model", "created": 0, "owned_by": "regard", "status": "failed"}
        for name in runs.failed
    ]
    ready = [run.to_dict() for run in runs.ready.values()]
    return Reply({"object": "list", "data": [*ready, *failed]})


@router.post(
    "/predict",
    response_model=schemas.PredictReply,
    responses={200: {"content": {"text/event-stream": {}}}},
    openapi_extra=body_of(schemas.PredictRequest, has_form=True),
)
async def predict_sources(request: Request) -> Response:
    """Predict a target for each source.

    Files are sent in base64, or as parts of a form. With `stream`, the reply is a stream of events:
    `token` with the most likely target so far, then `result` with the reply or `error`.
    """
    asked = await read_body(request, schemas.PredictRequest)
    state = state_of(request)
    run, sources = state.runs.find(asked.model), as_list(asked.sources)
    search = find_search(
        run, asked.search, state.limits, num_best=asked.num_best, prefix=asked.prefix
    )
    if not asked.stream:
        return await answer(request, _predict(state, run, sources, asked=search))
    if len(sources) != 1 or "stream" not in run.features:
        raise invalid("`stream` is for one source and models that generate text.")
    return await event_stream(
        state,
        run,
        sources[0],
        describe=lambda _, tokens: describe_tokens(run, tokens),
        search=partial(_search, run, search),
    )


@router.post(
    "/alternatives",
    response_model=schemas.PredictReply,
    openapi_extra=body_of(schemas.AlternativesRequest, has_form=True),
)
async def alternatives(request: Request) -> Response:
    """Predict a target with the most likely tokens at each of its positions."""
    asked = await read_body(request, schemas.AlternativesRequest)
    state = state_of(request)
    run = find_run(state, asked.model, "alternatives")
    search = find_search(run, asked.search, state.limits, prefix=asked.prefix)

    def find(items: list[Any]) -> list[Predicted]:
        task = run.task
        assert isinstance(task, Generates) and search.search is not None
        found = task.predict(items, search=search.search, prefix=search.prefix)
        several = add_alternatives(task, items, found, num=asked.num, search=search.search)
        return [
            (item, [to_plain(one) for one in best])
            for item, best in zip(items, several, strict=True)
        ]

    return await answer(request, _reply(state, run, asked.source, find=find))


@router.post(
    "/beam",
    response_model=schemas.BeamReply,
    openapi_extra=body_of(schemas.BeamRequest, has_form=True),
)
async def beam(request: Request) -> Response:
    """Return the beam tree of a source: all hypotheses that the search kept or finished."""
    asked = await read_body(request, schemas.BeamRequest)
    state = state_of(request)
    run = find_run(state, asked.model, "beam")
    search = find_search(run, asked.search, state.limits, prefix=asked.prefix)

    def find(items: list[Any]) -> list[dict[str, Any]]:
        return [
            find_beam_tree(run.task, item, search=search.search, prefix=search.prefix).to_dict()
            | {"source": source_text(item, run.modality)}
            for item in items
        ]

    return await answer(request, reply_of_one(state, run, asked.source, find=find))


@router.post(
    "/attention",
    response_model=schemas.AttentionReply,
    openapi_extra=body_of(schemas.AttentionRequest, has_form=True),
)
async def attention(request: Request) -> Response:
    """Return attention weights of a target over its source, or a saliency without attention."""
    asked = await read_body(request, schemas.AttentionRequest)
    state = state_of(request)
    run = find_run(state, asked.model, "attention")
    if asked.target is not None:
        state.limits.check_sources([asked.target])

    def find(items: list[Any]) -> list[dict[str, Any]]:
        return _attend(run, state.limits, asked, items=items)

    return await answer(request, reply_of_one(state, run, asked.source, find=find))


def _attend(
    run: ServedRun, limits: Limits, asked: schemas.AttentionRequest, *, items: list[Any]
) -> list[dict[str, Any]]:
    assert isinstance(run.task, Attends)
    (item,) = items
    example, _ = run.task.example_to_show(item, asked.target)
    (found,) = run.task.attend([Example(example.source, example.target)])
    weights = found.mean() if asked.layers == "mean" else found.weights
    if weights.numel() > limits.weights:
        raise RequestError(
            413,
            f"A reply may have {limits.weights:,} attention weights, but this one has "
            f"{weights.numel():,}. Send a shorter source, or ask for the mean of the layers.",
        )
    rows, columns = found.labels
    return [
        {
            "source": columns,
            "target": rows,
            "kind": found.kind,
            "grid": None if found.grid is None else list(found.grid),
            "weights": weights.tolist(),
        }
    ]


async def _search(
    run: ServedRun, asked: Asked, *, items: list[Any], watch: Watch
) -> dict[str, Any]:
    return results(run, await predict(run, items, asked, watch=watch))


async def _predict(
    state: ServerState, run: ServedRun, sources: list[str | Upload], *, asked: Asked
) -> Response:
    async with prepared(state, run, sources) as items:
        return Reply(results(run, await predict(run, items, asked)))


async def _reply(
    state: ServerState, run: ServedRun, source: str | Upload, *, find: Any
) -> Response:
    async with prepared(state, run, [source]) as items:
        return Reply(results(run, await compute(run, items, find)))


async def reply_of_one(
    state: ServerState,
    run: ServedRun,
    source: str | Upload,
    *,
    find: Callable[[list[Any]], list[dict[str, Any]]],
) -> Response:
    """Return the reply with the values that a function of the only source returns."""
    async with prepared(state, run, [source]) as items:
        (found,) = await compute(run, items, find)
        return Reply({"model": run.name, **found})


def results(run: ServedRun, predicted: list[Predicted]) -> dict[str, Any]:
    """Return the reply with the predictions of sources."""
    return {
        "model": run.name,
        "results": [
            {"source": source_text(item, run.modality), "predictions": best}
            for item, best in predicted
        ],
    }


def as_list(sources: Any) -> list[str | Upload]:
    """Return the sources of a request as a list."""
    return list(sources) if isinstance(sources, list) else [sources]


def find_run(state: ServerState, name: str | None, feature: str) -> ServedRun:
    """Return a run that has a feature."""
    run = state.runs.find(name)
    if feature not in run.features:
        known = [one.name for one in state.runs.ready.values() if feature in one.features]
        hint = f" Models that have it: {', '.join(known)}." if known else ""
        raise invalid(f"The model '{run.name}' has no `{feature}`.{hint}")
    return run
