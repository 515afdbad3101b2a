"""The application: routes, middleware, health and metrics."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import prometheus_client
from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

import regard
from regard.serve.bodies import Reply
from regard.serve.docs_page import write_docs
from regard.serve.observing import Observer
from regard.serve.replies import ERRORS
from regard.serve.routes import (
    embeddings,
    explaining,
    inspecting,
    schemas,
    trainings,
    translate,
    v1,
)
from regard.serve.security import Guard
from regard.serve.state import ServerState, state_of

STATIC_FOLDER = Path(__file__).parent / "static"
"""Files of pages."""

BODIES: tuple[type[BaseModel], ...] = (
    schemas.PredictRequest,
    schemas.AlternativesRequest,
    schemas.BeamRequest,
    schemas.AttentionRequest,
    schemas.EmbedRequest,
    schemas.EmbeddingsRequest,
    translate.TranslateRequest,
    translate.DetectRequest,
    *explaining.BODIES,
    *inspecting.BODIES,
)
"""Bodies of requests, whose schemas are part of the OpenAPI file."""

router = APIRouter()


@router.get("/healthz", tags=["health"])
async def health() -> Response:
    """Return 200 while the process runs."""
    return Reply({"status": "alive"})


@router.get("/readyz", tags=["health"], responses={503: {"description": "Not ready."}})
async def readiness(request: Request) -> Response:
    """Return 200 while the server accepts requests and all its runs work."""
    state = state_of(request)
    if state.is_draining:
        return Reply({"status": "stopping"}, 503)
    failed = [run.name for run in state.runs.ready.values() if not run.batcher.is_working]
    return Reply({"status": "failed" if failed else "ready"}, 503 if failed else 200)


@router.get(
    "/metrics",
    tags=["health"],
    response_class=PlainTextResponse,
    responses={401: v1.REFUSED[401]},
)
async def metrics(request: Request) -> Response:
    """Return counters of requests, batches and queues in the format of Prometheus."""
    content = state_of(request).metrics.render()
    return Response(content, media_type=prometheus_client.CONTENT_TYPE_LATEST)


@router.get("/", include_in_schema=False)
async def page() -> Response:
    """Return the page."""
    return FileResponse(STATIC_FOLDER / "index.html")


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    """Return the documentation of the API."""
    return HTMLResponse(write_docs(request.app.openapi()))


class Application(FastAPI):
    """Application whose OpenAPI description has the bodies that routes read themselves."""

    def openapi(self) -> dict[str, Any]:
        """Return the description."""
        description = super().openapi()
        components = description.setdefault("components", {})
        if "securitySchemes" not in components:
            template = "#/components/schemas/{model}"
            inputs: list[Any] = [(one, "validation") for one in BODIES]
            _, bodies = models_json_schema(inputs, ref_template=template)
            components.setdefault("schemas", {}).update(bodies["$defs"])
            components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            description["security"] = [{}, {"token": []}]
        return description


def build_app(state: ServerState) -> FastAPI:
    """Return the application of a server."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        # Not in the event loop, which gives the last results to their requests.
        await run_in_threadpool(state.close)

    # CORS comes first, so that pages of named origins can also read why they are refused.
    middleware = [Middleware(Guard, state), Middleware(Observer, state)]
    if state.access.origins:
        cors = Middleware(
            CORSMiddleware,
            allow_origins=list(state.access.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
        )
        middleware.insert(0, cors)
    app = Application(
        title="regard",
        version=regard.__version__,
        description="Predictions of encoder–decoder models, with what explains them.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        middleware=middleware,
        exception_handlers=ERRORS,  # type: ignore[arg-type]
    )
    app.state.server = state
    for one in (translate, v1, explaining, inspecting, embeddings, trainings):
        app.include_router(one.router)
    app.include_router(router)
    app.mount("/static", StaticFiles(directory=STATIC_FOLDER))
    return app
