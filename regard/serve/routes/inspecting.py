"""Routes of the page: a prediction with all that is shown of it, and scores of a prediction."""

import base64
import io
from functools import partial
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import Response
from numpy.typing import NDArray
from PIL import Image
from pydantic import BaseModel, Field
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from regard.interpret.inspection import Inspection, attend_to_tokens, inspect_source
from regard.search.settings import SearchConfig
from regard.search.watching import Watch
from regard.serve.batching import Compute, Job
from regard.serve.bodies import Reply, answer, body_of, read_body
from regard.serve.computing import find_search, source_text, to_plain
from regard.serve.errors import RequestError, invalid
from regard.serve.limits import Limits
from regard.serve.routes.schemas import Body, PredictionReply, SearchRequest, Source
from regard.serve.routes.v1 import REFUSED, find_run, reply_of_one
from regard.serve.runs import ServedRun
from regard.serve.state import state_of
from regard.serve.streaming import Throttle, describe_tokens, event_stream
from regard.tasks.generation.task import Predictor
from regard.tasks.prediction import AttentionMap

router = APIRouter(prefix="/v1", responses=REFUSED, tags=["page"])

MAX_FRAMES = 16
"""Maximum number of frames of a video in a reply, spread evenly."""

EVENT_WEIGHTS = 20_000
"""Maximum number of attention weights of an event; larger ones come with the result only."""

ATTENTION_SHARE = 0.25
"""Share of the time of a watched search that attention weights of its hypotheses may take."""


class InspectRequest(SearchRequest):
    """A source whose prediction is to be shown."""

    source: Source
    tokens: list[str] = Field(
        default_factory=list,
        max_length=10_000,
        description="First tokens of the prediction, as in an earlier one; the search continues.",
    )
    num_alternatives: int = Field(5, ge=1, le=100, description="Tokens per position.")
    stream: bool = Field(False, description="Whether to send events during the search.")


class ShownAttention(BaseModel):
    """Attention weights of the best prediction."""

    source: list[str] = Field(description="Tokens, cells of an image or times.")
    target: list[str]
    kind: str
    grid: list[int] | None
    num_text_tokens: int = Field(description="Labels of `source` before the cells of an image.")
    weights: list[Any] = Field(
        description="(layer, head, target, source); empty for a model without attention."
    )
    is_mean: bool = Field(description="Whether layers and heads are averaged, since it is large.")


class ShownInput(BaseModel):
    """The input as the model reads it."""

    kind: str = Field(description="`image`, `video` or `audio`.")
    images: list[str] = Field(
        description="PNG as data URLs: an image, frames of a video, or a grey spectrogram whose "
        "lowest frequency is the last row."
    )
    seconds: float | None = Field(None, description="Length of a recording.")
    frames_per_position: int | None = None


class InspectReply(BaseModel):
    """Predictions for a source with attention weights and the input as the model reads it."""

    model: str
    source: str | None
    predictions: list[PredictionReply]
    attention: ShownAttention | None
    input: ShownInput | None


class EvaluateRequest(Body):
    """A prediction to compare with a reference."""

    prediction: str
    reference: str


class ScoreReply(BaseModel):
    """A score with its signature."""

    value: float
    signature: str


class EvaluateReply(BaseModel):
    """Scores of one sentence."""

    bleu: ScoreReply
    chrf: ScoreReply


BODIES = (InspectRequest, EvaluateRequest)


@router.post(
    "/inspect",
    response_model=InspectReply,
    responses={200: {"content": {"text/event-stream": {}}}},
    openapi_extra=body_of(InspectRequest),
)
async def inspect_one(request: Request) -> Response:
    """Predict for one source, with alternatives, attention weights and the input of the model.

    With `stream`, the reply is a stream of events: `token` with the most likely target so far,
    and from time to time its attention weights, then `result` with the reply or `error`.
    """
    asked = await read_body(request, InspectRequest)
    state = state_of(request)
    run = state.runs.find(asked.model)
    if asked.prefix:
        raise invalid("`prefix` is for `/v1/predict`. Give `tokens`.")
    search = find_search(run, asked.search, state.limits).search
    # Texts of uploads are checked when they are read.
    state.limits.check_sources(["".join(asked.tokens)])
    find = partial(_inspect, run=run, limits=state.limits, asked=asked, search=search)
    if not asked.stream:
        return await answer(request, reply_of_one(state, run, asked.source, find=find))
    find_run(state, asked.model, "stream")
    return await event_stream(
        state,
        run,
        asked.source,
        describe=_Describe(run),
        search=partial(_submit, run, find),
    )


@router.post("/evaluate", response_model=EvaluateReply, openapi_extra=body_of(EvaluateRequest))
async def evaluate(request: Request) -> Response:
    """Return BLEU and chrF of one sentence."""
    asked = await read_body(request, EvaluateRequest)
    state_of(request).limits.check_sources([asked.prediction, asked.reference])
    # Sentences of fewer than four tokens have no 4-grams.
    metrics = {"bleu": BLEU(effective_order=True), "chrf": CHRF()}
    scores = {}
    for name, metric in metrics.items():
        found = metric.sentence_score(asked.prediction, [asked.reference])
        scores[name] = {"value": found.score, "signature": str(metric.get_signature())}
    return Reply(scores)


async def _submit(
    run: ServedRun, find: Compute, *, items: list[Any], watch: Watch
) -> dict[str, Any]:
    (found,) = await run.batcher.submit(Job(object(), items, find, watch=watch))
    return {"model": run.name, **found}


def _inspect(
    items: list[Any],
    *,
    run: ServedRun,
    limits: Limits,
    asked: InspectRequest,
    search: SearchConfig | None,
) -> list[dict[str, Any]]:
    (item,) = items
    found = inspect_source(
        run.task,
        item,
        search=search,
        tokens=asked.tokens,
        num_alternatives=asked.num_alternatives,
    )
    return [
        {
            "source": source_text(item, run.modality),
            "predictions": [to_plain(one) for one in found.predictions],
            "attention": _show_attention(found.attention, limits.weights),
            "input": _show_input(found),
        }
    ]


class _Describe:
    """Describes hypotheses of a watched search, with attention weights from time to time.

    They are computed while the search waits, so they take a limited share of its time.
    """

    def __init__(self, run: ServedRun) -> None:
        self._run, self._throttle = run, Throttle(ATTENTION_SHARE)

    def __call__(self, items: list[Any], tokens: tuple[int, ...]) -> dict[str, Any]:
        described = describe_tokens(self._run, tokens)
        task = self._run.task
        if isinstance(task, Predictor) and self._throttle.is_due():
            with self._throttle.measuring():
                described |= self._attend(task, items[0], tokens)
        return described

    @staticmethod
    def _attend(task: Predictor, item: Any, tokens: tuple[int, ...]) -> dict[str, Any]:
        found = attend_to_tokens(task, item, tokens)
        if not found.weights.shape[0] or found.weights[0, 0].numel() > EVENT_WEIGHTS:
            return {}
        return {"weights": _rounded(found.mean()), "source": list(found.source)}


def _show_attention(found: AttentionMap | None, limit: int) -> dict[str, Any] | None:
    if found is None:
        return None
    is_mean = found.weights.numel() > limit
    weights = found.mean()[None, None] if is_mean else found.weights
    if weights.numel() > limit:
        raise RequestError(
            413,
            f"A reply may have {limit:,} attention weights, but this one has "
            f"{weights.numel():,}. Send a shorter source.",
        )
    return {
        "source": list(found.source),
        "target": list(found.target),
        "kind": found.kind,
        "grid": None if found.grid is None else list(found.grid),
        "num_text_tokens": found.num_text_tokens,
        "weights": _rounded(weights),
        "is_mean": is_mean,
    }


def _rounded(weights: Any) -> Any:
    """Return weights as lists with four decimals."""
    return np.round(weights.double().numpy(), 4).tolist()


def _show_input(found: Inspection) -> dict[str, Any] | None:
    attention = found.attention
    if attention is None:
        return None
    if attention.recording is not None:
        frames, hop = attention.recording.frames, attention.recording.hop
        return {
            "kind": "audio",
            "images": [_png(_to_grey(frames))],
            "seconds": round(len(frames) * hop, 3),
            "frames_per_position": attention.recording.frames_per_position,
        }
    if attention.image is None:
        return None
    if attention.image.ndim == 3:
        return {"kind": "image", "images": [_png(attention.image)]}
    step = -(-len(attention.image) // MAX_FRAMES)
    return {"kind": "video", "images": [_png(one) for one in attention.image[::step]]}


def _to_grey(frames: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return log-mel frames (F, M) as an image (M, F) from dark to bright, low frequencies last."""
    low, high = np.percentile(frames, (2, 99.5)) if frames.size else (0.0, 1.0)
    scaled = np.clip((frames - low) / max(float(high - low), 1e-6), 0, 1)
    return np.ascontiguousarray((255 * scaled.T[::-1]).astype(np.uint8))


def _png(pixels: NDArray[np.uint8]) -> str:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
