"""Replies to requests that fail."""

import traceback
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from regard.core.errors import RegardError
from regard.core.logging import logger
from regard.serve.errors import RequestError, invalid
from regard.serve.state import state_of

Handler = Callable[[Request, Any], Awaitable[Response]]

OPENAI = "/v1/embeddings"
"""Path whose errors have the shape of OpenAI."""


def error_reply(path: str, error: RequestError) -> Response:
    """Return the reply for an error, in the shape that clients of a path expect."""
    content: dict[str, Any] = {"error": error.message}
    if path == OPENAI:
        kind = "invalid_request_error" if error.status < 500 else "server_error"
        content = {"error": {"message": error.message, "type": kind, "param": None, "code": None}}
    return JSONResponse(content, error.status, dict(error.headers))


async def reply_to_request_error(request: Request, error: Exception) -> Response:
    """Return the reply to a request that is refused."""
    assert isinstance(error, RequestError)
    return error_reply(request.url.path, error)


async def reply_to_regard_error(request: Request, error: Exception) -> Response:
    """Return the reply to a request whose settings or data cannot be used."""
    message = state_of(request).uploads.clean(" ".join(str(error).split()))
    return error_reply(request.url.path, RequestError(422, message))


async def reply_to_http_error(request: Request, error: Exception) -> Response:
    """Return the reply to a request for a path or a method that does not exist."""
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    return error_reply(
        request.url.path, RequestError(error.status_code, f"{error.detail}.", headers)
    )


async def reply_to_query_error(request: Request, error: Exception) -> Response:
    """Return the reply to a request whose query breaks a rule; the query is not repeated."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    return error_reply(request.url.path, invalid(f"`{first['loc'][-1]}`: {first['msg']}."))


async def reply_to_bug(request: Request, error: Exception) -> Response:
    """Return the reply to a request that fails by a fault of the server, and log the fault.

    The message of an exception may contain a part of the request, so it is logged only if requests
    are.
    """
    state = state_of(request)
    is_memory = isinstance(error, MemoryError) or "out of memory" in str(error)
    lines = traceback.format_tb(error.__traceback__)
    text = str(error) if state.logs_requests else "message not logged"
    logger.error("%s (%s)\n%s", type(error).__name__, text, "".join(lines))
    if is_memory:
        failure = RequestError(503, "There is not enough memory.", {"Retry-After": "5"})
    else:
        failure = RequestError(500, "The server has failed; its log has more.")
    return error_reply(request.url.path, failure)


ERRORS: dict[int | type[Exception], Handler] = {
    RequestError: reply_to_request_error,
    RegardError: reply_to_regard_error,
    HTTPException: reply_to_http_error,
    RequestValidationError: reply_to_query_error,
    Exception: reply_to_bug,
}
"""Handlers of exceptions."""
