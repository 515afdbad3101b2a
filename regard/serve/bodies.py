"""Bodies of requests, read within limits: JSON, forms and uploads."""

import asyncio
import math
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from fastapi import Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ValidationError
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from regard.serve.errors import RequestError, gone, invalid, too_slow
from regard.serve.routes.schemas import Body, Upload
from regard.serve.state import state_of

Model = TypeVar("Model", bound=BaseModel)
Result = TypeVar("Result")

JSON = "application/json"
FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")
MAX_FIELDS = 1_000
"""Maximum number of fields of a form."""


async def read_body(request: Request, model: type[Model], *, has_query: bool = False) -> Model:
    """Read and check the body of a request.

    Args:
        request: The request.
        model: What it must be.
        has_query: Whether fields may also be in the query of the address.
    """
    seconds = state_of(request).limits.seconds
    try:
        return await asyncio.wait_for(_read(request, model, has_query=has_query), seconds)
    except TimeoutError:
        raise too_slow(seconds) from None
    except ValidationError as error:
        raise invalid(_explain(error)) from None
    except ClientDisconnect:
        raise gone() from None


async def _read(request: Request, model: type[Model], *, has_query: bool) -> Model:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    query = _merge(request.query_params.multi_items(), model) if has_query else {}
    if kind in FORMS:
        try:
            async with request.form(max_files=MAX_FIELDS, max_fields=MAX_FIELDS) as form:
                return model.model_validate({**query, **await _read_form(form, model)})
        except HTTPException as error:
            raise RequestError(
                400, f"The form cannot be read: {error.detail.rstrip('.')}."
            ) from None
    body = await request.body()
    if not body and query:
        return model.model_validate(query)
    if kind != JSON:
        raise RequestError(
            415, f"The content type must be {JSON} or that of a form, but is '{kind[:100]}'."
        )
    # Our own routes take JSON types as they are; others convert, as their clients expect.
    return model.model_validate_json(body, strict=issubclass(model, Body))


async def _read_form(form: FormData, model: type[BaseModel]) -> dict[str, Any]:
    """Return the fields of a form; files, with the field `text`, become sources."""
    texts = [(name, value) for name, value in form.multi_items() if isinstance(value, str)]
    fields = _merge(texts, model)
    files = [value for _, value in form.multi_items() if isinstance(value, UploadFile)]
    if files:
        text = fields.pop("text", None)
        uploads = [Upload.of(await file.read(), text) for file in files]
        name = "sources" if "sources" in model.model_fields else "source"
        fields[name] = uploads if name == "sources" and len(uploads) > 1 else uploads[0]
    return fields


def _merge(items: list[tuple[str, str]], model: type[BaseModel]) -> dict[str, Any]:
    """Return fields; those that are repeated have a list."""
    fields: dict[str, Any] = {}
    for name, value in items:
        if name not in fields:
            fields[name] = value
        elif isinstance(fields[name], list):
            fields[name].append(value)
        else:
            fields[name] = [fields[name], value]
    return fields


def _explain(error: ValidationError) -> str:
    """Return one sentence about the first fault; no part of the request is repeated."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    path = ".".join(str(part) for part in first["loc"] if part not in ("str", "Upload"))[:200]
    message = first["msg"].rstrip(".")
    return f"`{path}`: {message}." if path else f"The body cannot be read: {message}."


async def answer(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """Return the result of a coroutine, which is cancelled if the client leaves or time is over."""
    seconds = state_of(request).limits.seconds
    task = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_wait_until_gone(request))
    try:
        await asyncio.wait((task, leaving), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        if leaving.done():
            raise gone()
        raise too_slow(seconds)
    finally:
        leaving.cancel()
        task.cancel()


async def _wait_until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


class Reply(JSONResponse):
    """JSON whose numbers are finite: others are null."""

    def render(self, content: Any) -> bytes:
        """Return the content as UTF-8."""
        return super().render(finite(content))


def finite(value: Any) -> Any:
    """Return plain values in which numbers that are not finite are None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return value


def body_of(model: type[BaseModel], *, has_form: bool = False) -> dict[str, Any]:
    """Return the description of a body for OpenAPI; the model is added to its schemas."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    content: dict[str, Any] = {JSON: {"schema": schema}}
    if has_form:
        content |= {name: {"schema": schema} for name in FORMS}
    return {"requestBody": {"required": True, "content": content}}
