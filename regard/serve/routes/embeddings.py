"""Routes of vectors: our own, and one in the shape of OpenAI."""

import base64
from functools import partial
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import Response

from regard.interpret.embed import Vectors, embed
from regard.serve.batching import Job
from regard.serve.bodies import Reply, answer, body_of, read_body
from regard.serve.computing import prepared
from regard.serve.errors import RequestError, invalid
from regard.serve.routes import schemas
from regard.serve.routes.schemas import Upload
from regard.serve.routes.v1 import REFUSED, as_list
from regard.serve.runs import ServedRun
from regard.serve.state import ServerState, state_of
from regard.tasks.base import Embeds

router = APIRouter(prefix="/v1", responses=REFUSED, tags=["vectors"])


@router.post(
    "/embed",
    response_model=schemas.EmbedReply,
    openapi_extra=body_of(schemas.EmbedRequest, has_form=True),
)
async def embed_sources(request: Request) -> Response:
    """Return one vector per source from the encoder; vectors of empty texts are zero."""
    asked = await read_body(request, schemas.EmbedRequest)
    state = state_of(request)
    run, sources = _find(state, asked.model), as_list(asked.sources)
    found = await answer(
        request, _embed(state, run, sources, layer=asked.layer, pooling=asked.pooling)
    )
    return Reply({"model": run.name, "vectors": [one.tolist() for one in found]})


@router.post(
    "/embeddings",
    response_model=schemas.EmbeddingsReply,
    responses={
        status: {**reply, "model": schemas.EmbeddingsErrorReply}
        for status, reply in REFUSED.items()
    },
    openapi_extra=body_of(schemas.EmbeddingsRequest),
)
async def embeddings(request: Request) -> Response:
    """Return vectors of texts in the shape of OpenAI's API; `usage` counts tokens."""
    asked = await read_body(request, schemas.EmbeddingsRequest)
    state = state_of(request)
    run = _find(state, asked.model)
    if run.modality != "text":
        raise invalid(f"The model '{run.name}' does not read texts. Use `/v1/embed`.")
    texts = [asked.input] if isinstance(asked.input, str) else asked.input
    found = await answer(request, _embed(state, run, [*texts]))
    assert isinstance(run.task, Embeds)
    num_tokens = sum(len(item) for item in run.task.encoder_items(texts))
    data = [
        {"object": "embedding", "index": index, "embedding": _encode(one, asked.encoding_format)}
        for index, one in enumerate(found)
    ]
    usage = {"prompt_tokens": num_tokens, "total_tokens": num_tokens}
    return Reply({"object": "list", "data": data, "model": run.name, "usage": usage})


async def _embed(
    state: ServerState,
    run: ServedRun,
    sources: list[str | Upload],
    *,
    layer: int | None = None,
    pooling: str | None = None,
) -> list[Vectors]:
    function = partial(embed, run.task, layer=layer, pooling=pooling)
    async with prepared(state, run, sources) as items:
        job = Job(("embed", layer, pooling), items, lambda batch: list(function(batch)))
        return await run.batcher.submit(job)


def _encode(vector: Vectors, encoding: str) -> Any:
    if encoding == "base64":
        return base64.b64encode(np.ascontiguousarray(vector, "<f4").tobytes()).decode()
    return vector.tolist()


def _find(state: ServerState, name: str | None) -> ServedRun:
    run = state.runs.find(name)
    if "embed" not in run.features:
        raise RequestError(422, f"The model '{run.name}' has no encoder.")
    return run
