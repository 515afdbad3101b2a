"""Middleware that counts requests, logs them if asked, and replies to faults of the server."""

import time

from fastapi import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.core.logging import logger
from regard.serve.replies import reply_to_bug
from regard.serve.state import ServerState

OTHER = "other"
"""Name of all paths without a route."""


class Observer:
    """Middleware that counts requests by route and status."""

    def __init__(self, app: ASGIApp, state: ServerState) -> None:
        self._app, self._state = app, state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        metrics, status, started = self._state.metrics, 0, time.perf_counter()

        async def send_and_count(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        metrics.in_progress.inc()
        try:
            await self._app(scope, receive, send_and_count)
        except Exception as error:
            reply = await reply_to_bug(Request(scope), error)
            if not status:
                await reply(scope, receive, send_and_count)
        finally:
            route = getattr(scope.get("route"), "path", OTHER)
            seconds = time.perf_counter() - started
            metrics.in_progress.dec()
            metrics.count_request(route, status, seconds)
            if self._state.logs_requests:
                logger.info("%s %s %s %.3f s", scope["method"], scope["path"], status, seconds)
