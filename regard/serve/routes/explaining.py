"""Routes of attribution and what-if analysis."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, BeforeValidator, Field

from regard.interpret.attribution import METHODS, attribute
from regard.interpret.editing import WeightEdit
from regard.interpret.what_if import (
    WhatIf,
    change_source,
    force_token,
    force_word,
    replace_source_word,
    set_attention_weight,
)
from regard.serve.bodies import answer, body_of, read_body
from regard.serve.computing import source_text
from regard.serve.errors import RequestError
from regard.serve.routes.schemas import Body, Model, Source, from_json
from regard.serve.routes.v1 import REFUSED, find_run, reply_of_one
from regard.serve.state import ServerState, state_of

router = APIRouter(prefix="/v1", responses=REFUSED, tags=["explanations"])

Position = Annotated[int, Field(ge=0, le=100_000)]
Word = Annotated[str, Field(max_length=200)]


def _from_names(value: Any) -> Any:
    """Return a field of a form, names separated by commas, as a list."""
    return value.split(",") if isinstance(value, str) else value


class AttributionRequest(Body):
    """A source whose prediction is to be explained."""

    model: Model = None
    source: Source
    target: str | None = Field(None, description="The target; the prediction if not given.")
    methods: Annotated[
        list[Literal["attention", "gradients", "integrated_gradients", "erasure"]],
        BeforeValidator(_from_names),
        Field(min_length=1, max_length=len(METHODS)),
    ] = ["gradients"]  # noqa: RUF012 - pydantic copies it
    is_measured: bool = Field(False, description="Whether to measure the faithfulness.")


class SourceEdit(Body):
    """Another source."""

    kind: Literal["source"]
    changed: str = Field(description="The changed source.")


class SourceWordEdit(Body):
    """Another word in the source."""

    kind: Literal["source_word"]
    position: Position = Field(description="Index of the word, from 0.")
    word: Word = Field(description="The word; empty to delete it.")


class TargetWordEdit(Body):
    """A word in the target, after which the search continues."""

    kind: Literal["target_word"]
    position: Position = Field(description="Index of the word in the prediction, from 0.")
    word: Word


class TargetTokenEdit(Body):
    """A token in the target, such as an alternative, after which the search continues."""

    kind: Literal["target_token"]
    position: Position = Field(description="Index of the token in the prediction, from 0.")
    token: Word


class AttentionEdit(Body):
    """An attention weight that is set by hand."""

    kind: Literal["attention"]
    target_position: Position
    source_position: Position
    weight: float = Field(ge=0, le=1)
    layer: int | None = Field(None, ge=0, le=1000, description="All layers if not given.")
    head: int | None = Field(None, ge=0, le=1000, description="All heads if not given.")


Edit = Annotated[
    SourceEdit | SourceWordEdit | TargetWordEdit | TargetTokenEdit | AttentionEdit,
    Field(discriminator="kind"),
    BeforeValidator(from_json),
]


class WhatIfRequest(Body):
    """A source and a change, whose effect is asked for."""

    model: Model = None
    source: Source
    edit: Edit


class AttributionReply(BaseModel):
    """Contributions of the inputs to each token of an output."""

    model: str
    source: str | None
    prediction: str
    source_tokens: list[str]
    target_tokens: list[str]
    token_log_probs: list[float | None]
    attributions: list[dict[str, Any]] = Field(
        description="`method`, `source` (target, source) and `prefix` (target, target)."
    )
    random: dict[str, Any] | None = None


class EditedReply(BaseModel):
    """An output, and the probability of its tokens without and with an edit."""

    text: str
    tokens: list[str]
    log_probs_before: list[float | None]
    log_probs_after: list[float | None]


class WhatIfReply(BaseModel):
    """The output before and after an edit."""

    model: str
    kind: Literal["source", "target", "attention"]
    source: str | None
    edited_source: str | None
    before: EditedReply
    after: EditedReply
    is_changed: bool


BODIES = (AttributionRequest, WhatIfRequest)


@router.post(
    "/attribution",
    response_model=AttributionReply,
    openapi_extra=body_of(AttributionRequest, has_form=True),
)
async def attribution(request: Request) -> Response:
    """Return how much each part of the source contributes to each token of the output."""
    asked = await read_body(request, AttributionRequest)
    state = state_of(request)
    run = find_run(state, asked.model, "attribution")
    check_explained(state, asked.source, asked.target)
    explain = partial(
        attribute,
        run.task,
        methods=list(dict.fromkeys(asked.methods)),
        target=asked.target,
        is_measured=asked.is_measured,
    )

    def find(items: list[Any]) -> list[dict[str, Any]]:
        source = {"source": source_text(items[0], run.modality)}
        return [explain(items[0]).to_dict() | source]

    return await answer(request, reply_of_one(state, run, asked.source, find=find))


@router.post(
    "/what-if", response_model=WhatIfReply, openapi_extra=body_of(WhatIfRequest, has_form=True)
)
async def what_if(request: Request) -> Response:
    """Return the output before and after a change of the source, the target or a weight."""
    asked = await read_body(request, WhatIfRequest)
    state = state_of(request)
    run = find_run(state, asked.model, "what-if")
    changed = asked.edit.changed if isinstance(asked.edit, SourceEdit) else None
    check_explained(state, asked.source, changed)
    has_source_edit = isinstance(asked.edit, SourceEdit | SourceWordEdit)
    if has_source_edit and run.modality != "text":
        raise RequestError(422, f"The source of '{run.name}' is no text, so it cannot be edited.")
    apply = find_function(asked.edit)

    def find(items: list[Any]) -> list[dict[str, Any]]:
        found = apply(run.task, items[0]).to_dict()
        if run.modality != "text":
            text = source_text(items[0], run.modality)
            found |= {"source": text, "edited_source": text}
        return [found]

    return await answer(request, reply_of_one(state, run, asked.source, find=find))


def find_function(edit: Edit) -> Callable[..., WhatIf]:
    """Return the function of a task and a source that applies an edit."""
    if isinstance(edit, SourceEdit):
        return partial(change_source, changed=edit.changed)
    if isinstance(edit, SourceWordEdit):
        return partial(replace_source_word, position=edit.position, word=edit.word)
    if isinstance(edit, TargetWordEdit):
        return partial(force_word, position=edit.position, word=edit.word)
    if isinstance(edit, TargetTokenEdit):
        return partial(force_token, position=edit.position, token=edit.token)
    values = {name: value for name, value in edit.model_dump().items() if name != "kind"}
    return partial(set_attention_weight, edit=WeightEdit(**values))


def check_explained(state: ServerState, source: Any, other: str | None) -> None:
    """Raise if a text is too long for explanations, which take much longer than a prediction."""
    limit = state.limits.explained
    texts = [text for text in (source, other) if isinstance(text, str)]
    longest = max(map(len, texts), default=0)
    if longest > limit:
        raise RequestError(
            413,
            f"A text to explain may have {limit:,} characters, but one has {longest:,}. Send a "
            "shorter one.",
        )
