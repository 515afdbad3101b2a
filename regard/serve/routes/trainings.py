"""Routes of trainings: their progress, the rows of their logs and their samples."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from regard.serve.bodies import Reply
from regard.serve.routes.v1 import REFUSED
from regard.serve.state import state_of

router = APIRouter(prefix="/v1", responses=REFUSED, tags=["trainings"])

Index = Annotated[int, Query(ge=0, le=2**53)]


class BestReply(BaseModel):
    """The best validation of a training."""

    step: int
    value: float | None = Field(description="The score, as it is spelled for people.")


class ProgressReply(BaseModel):
    """The progress of a training."""

    name: str
    task: str | None
    recipe: str | None = Field(description="Name of the recipe, if it has one.")
    is_running: bool
    stopped: str | None = Field(
        description="Why training has stopped, such as `patience` or `interrupted`; null before."
    )
    step: int
    total_steps: int | None = Field(description="Maximum number of steps; null if unknown.")
    metric: str | None = Field(description="Name of the metric in the rows of validations.")
    metric_label: str | None = Field(description="The metric as it is spelled for people.")
    best: BestReply | None
    seconds: float | None = Field(description="Training time so far.")
    seconds_left: float | None = Field(
        description="Time until the nearest limit; null if unknown or if training does not run."
    )
    updated: float | None = Field(description="Seconds since the last row; null without rows.")


class TrainingsReply(BaseModel):
    """All trainings that the server follows."""

    trainings: list[ProgressReply]


class TrainingReply(ProgressReply):
    """The progress of a training, and rows that a client does not have yet."""

    rows: list[dict[str, Any]] = Field(description="Rows of the training log.")
    next: int = Field(description="`after` of the next request.")
    samples: list[dict[str, Any]] = Field(description="Samples of validations.")
    next_samples: int = Field(description="`samples_after` of the next request.")
    has_more: bool = Field(description="Whether there are more rows or samples already.")
    version: str = Field(description="`version` of the next request.")
    is_restarted: bool = Field(
        description="Whether the rows are those from the first on, as a resumed training has "
        "replaced its log."
    )


@router.get("/trainings", response_model=TrainingsReply)
async def trainings(request: Request) -> Response:
    """List the trainings that the server follows, running or not."""
    found = state_of(request).trainings
    return Reply({"trainings": await run_in_threadpool(found.describe)})


@router.get("/trainings/{name:path}", response_model=TrainingReply)
async def training(
    request: Request,
    name: str,
    *,
    after: Index = 0,
    samples_after: Index = 0,
    version: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    """Return the progress of a training, and the rows and samples after those that a client has."""
    found = state_of(request).trainings

    def read() -> dict[str, Any]:
        return found.find(name).read(after=after, samples_after=samples_after, version=version)

    return Reply(await run_in_threadpool(read))
