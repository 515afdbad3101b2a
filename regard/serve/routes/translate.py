"""Routes in the shape of LibreTranslate, for its clients."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from regard.serve.bodies import Reply, answer, body_of, read_body
from regard.serve.computing import find_search, predict, prepared
from regard.serve.errors import RequestError
from regard.serve.routes.v1 import REFUSED
from regard.serve.runs import ServedRun
from regard.serve.security import bearer_token, is_token
from regard.serve.state import ServerState, state_of
from regard.serve.text.languages import language_name
from regard.serve.text.markup import Markup
from regard.serve.text.sentences import Sentences

AUTO = "auto"
"""Source language that is detected."""

router = APIRouter(responses=REFUSED, tags=["translation"])


def _drop_empty(value: Any) -> Any:
    return None if value == "" else value


class KeyRequest(BaseModel):
    """A request that may have the server's token; unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)

    api_key: str | None = Field(None, description="The token, if the server needs one.")


class TranslateRequest(KeyRequest):
    """Texts to translate."""

    q: str | list[str] = Field(description="A text or several.")
    source: str = Field(description="Language of the texts; `auto` detects it.")
    target: str = Field(description="Language of the translations.")
    format: Annotated[Literal["text", "html"] | None, BeforeValidator(_drop_empty)] = "text"
    alternatives: int = Field(0, ge=0, le=100, description="Number of alternative translations.")


class DetectRequest(KeyRequest):
    """A text whose language is to be detected."""

    q: str | list[str]


class LanguageReply(BaseModel):
    """A language from which texts can be translated."""

    code: str
    name: str
    targets: list[str]


class DetectionReply(BaseModel):
    """A language of a text, with its probability in percent."""

    confidence: float
    language: str


class TranslateReply(BaseModel):
    """Translations: a text for a text, a list for a list."""

    translatedText: str | list[str]  # noqa: N815 - the name is that of LibreTranslate
    alternatives: list[Any] | None = None
    detectedLanguage: DetectionReply | list[DetectionReply] | None = None  # noqa: N815


class SettingsReply(BaseModel):
    """Settings for pages that use the server."""

    apiKeys: bool  # noqa: N815
    charLimit: int  # noqa: N815
    filesTranslation: bool  # noqa: N815
    frontendTimeout: int  # noqa: N815
    keyRequired: bool  # noqa: N815
    language: dict[str, dict[str, str]]
    suggestions: bool
    supportedFilesFormat: list[str]  # noqa: N815


@router.get("/languages", response_model=list[LanguageReply])
async def languages(request: Request) -> Response:
    """List the languages from which texts can be translated, and to which."""
    _authorize(request, request.query_params.get("api_key"))
    pairs = _pairs(state_of(request))
    codes = sorted({code for pair in pairs for code in pair})
    return Reply(
        [
            {
                "code": code,
                "name": language_name(code),
                "targets": sorted(target for source, target in pairs if source == code),
            }
            for code in codes
        ]
    )


@router.get("/frontend/settings", response_model=SettingsReply)
async def settings(request: Request) -> Response:
    """Return the limits of texts and the languages that a page shows first."""
    state = state_of(request)
    _authorize(request, request.query_params.get("api_key"))
    source, target = next(iter(_pairs(state)), ("", ""))
    return Reply(
        {
            "apiKeys": state.access.token is not None,
            "charLimit": state.limits.characters,
            "filesTranslation": False,
            "frontendTimeout": 500,
            "keyRequired": state.access.token is not None,
            "language": {
                "source": {"code": source, "name": language_name(source)},
                "target": {"code": target, "name": language_name(target)},
            },
            "suggestions": False,
            "supportedFilesFormat": [],
        }
    )


@router.post(
    "/detect",
    response_model=list[DetectionReply],
    openapi_extra=body_of(DetectRequest, has_form=True),
)
async def detect(request: Request) -> Response:
    """Return the languages of the served runs with their probabilities for a text."""
    asked = await read_body(request, DetectRequest, has_query=True)
    _authorize(request, asked.api_key)
    state = state_of(request)
    texts = [asked.q] if isinstance(asked.q, str) else asked.q
    state.limits.check_sources(texts)
    return Reply(await run_in_threadpool(_detect, state, texts))


@router.post(
    "/translate",
    response_model=TranslateReply,
    openapi_extra=body_of(TranslateRequest, has_form=True),
)
async def translate(request: Request) -> Response:
    """Translate texts; each line and each sentence of a text is translated on its own.

    In HTML, the texts between tags are translated and the tags stay, as do the contents of `code`,
    `pre`, `script`, `style` and elements with `translate="no"`.
    """
    asked = await read_body(request, TranslateRequest, has_query=True)
    _authorize(request, asked.api_key)
    return await answer(request, _translate(state_of(request), asked))


async def _translate(state: ServerState, asked: TranslateRequest) -> Response:
    texts = [asked.q] if isinstance(asked.q, str) else asked.q
    state.limits.check_sources(texts)
    source = asked.source
    detected: dict[str, Any] | None = None
    # Long texts take a second, in which other requests are answered.
    if source == AUTO:
        detected = await run_in_threadpool(_detect_source, state, texts, asked.target)
        source = detected["language"]
    run = _find_run(state, source, asked.target)
    outer, inner = await run_in_threadpool(_split, texts, is_html=asked.format == "html")
    sentences = [text for parts in inner for part in parts for text in part.texts]
    num_best = asked.alternatives + 1
    predicted: list[list[str]] = []
    if sentences:
        search = find_search(run, {}, state.limits, num_best=num_best)
        async with prepared(state, run, sentences) as items:
            found = await predict(run, items, search)
        predicted = [[one["text"] for one in best] for _, best in found]
    versions: list[list[str]] = []  # by rank and text
    for rank in range(num_best):
        # A sentence may have fewer translations.
        chosen = iter([best[min(rank, len(best) - 1)] for best in predicted])
        versions.append(
            [
                whole.with_texts([part.with_texts([*_take(chosen, part)]) for part in parts])
                for whole, parts in zip(outer, inner, strict=True)
            ]
        )
    is_single = isinstance(asked.q, str)
    reply: dict[str, Any] = {"translatedText": versions[0][0] if is_single else versions[0]}
    if asked.alternatives:
        others = [_distinct(several) for several in zip(*versions, strict=True)]
        reply["alternatives"] = others[0] if is_single else others
    if detected:
        # One model translates all texts, so they have one language.
        reply["detectedLanguage"] = detected if is_single else [detected] * len(texts)
    return Reply(reply)


def _split(
    texts: Sequence[str], *, is_html: bool
) -> tuple[list[Markup | Sentences], list[list[Sentences]]]:
    """Return texts as the parts to translate, and each part as sentences."""
    outer: list[Markup | Sentences] = [
        Markup(text) if is_html else Sentences(text) for text in texts
    ]
    return outer, [[Sentences(part) for part in one.texts] for one in outer]


def _take(texts: Any, part: Sentences) -> list[str]:
    return [next(texts) for _ in part.texts]


def _distinct(versions: Sequence[str]) -> list[str]:
    """Return the alternatives of a text without those that are equal to others before them."""
    return list(dict.fromkeys(versions))[1:]


def _pairs(state: ServerState) -> dict[tuple[str, str], ServedRun]:
    """Return the first run of each pair of languages."""
    pairs: dict[tuple[str, str], ServedRun] = {}
    for run in state.runs.ready.values():
        if run.languages is not None:
            pairs.setdefault(run.languages, run)
    return pairs


def _find_run(state: ServerState, source: str, target: str) -> ServedRun:
    pairs = _pairs(state)
    if (source, target) in pairs:
        return pairs[source, target]
    known = ", ".join("-".join(pair) for pair in pairs)
    raise RequestError(
        400,
        f"No model translates from '{source[:20]}' to '{target[:20]}'. "
        + (f"Languages: {known}." if known else "No model of this server has languages."),
    )


def _detect(state: ServerState, texts: Sequence[str]) -> list[dict[str, Any]]:
    """Return the languages of all texts together in LibreTranslate's shape."""
    return [
        {"confidence": round(100 * probability, 1), "language": code}
        for code, probability in state.runs.detector.detect("\n".join(texts))
    ]


def _detect_source(state: ServerState, texts: Sequence[str], target: str) -> dict[str, Any]:
    """Return the most likely language of texts from which they can be translated."""
    codes = {pair[0] for pair in _pairs(state) if pair[1] == target}
    found = [one for one in _detect(state, texts) if one["language"] in codes]
    if not found:
        raise RequestError(400, f"No model translates to '{target[:20]}'.")
    return found[0]


def _authorize(request: Request, key: str | None) -> None:
    """Raise unless the request has the server's token, if there is one."""
    token = state_of(request).access.token
    if token is None or is_token(bearer_token(request.scope["headers"]), token):
        return
    if not is_token(key, token):
        raise RequestError(403, "The field `api_key` with the server's token is missing or wrong.")
