"""Protection of the server: names, origins, tokens, sizes of bodies and headers of replies."""

import hmac
import re
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.core.errors import ConfigError
from regard.core.files import check_regular
from regard.serve.errors import RequestError, busy
from regard.serve.replies import error_reply
from regard.serve.state import ServerState

MIN_TOKEN = 16
"""Minimum number of characters of a token."""

LOOPBACK = ("127.0.0.1", "::1", "localhost")

PUBLIC = ("/", "/docs", "/openapi.json", "/healthz", "/readyz")
"""Paths that need no token: they have no data. So have those under `STATIC`."""

STATIC = "/static/"

LIBRETRANSLATE = ("/translate", "/detect", "/languages", "/frontend/settings")
"""Paths whose token may be the field `api_key`, which their routes check."""

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "media-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""Content security policy of pages: nothing is loaded from elsewhere, no inline code runs."""

DATA_POLICY = "default-src 'none'; frame-ancestors 'none'"

_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://([a-z0-9._-]+|\[[0-9a-f:]+\])(:[0-9]+)?")

HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


def read_token(path: Path | None) -> str | None:
    """Return the token in the first line of a file; None without a file."""
    if path is None:
        return None
    check_regular(path)
    try:
        lines = path.read_text(encoding="utf-8").split()
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"`--token-file` {path} cannot be read: {error}.") from None
    if len(lines) != 1 or len(lines[0]) < MIN_TOKEN or not lines[0].isascii():
        raise ConfigError(
            f"`--token-file` must hold one token of at least {MIN_TOKEN} ASCII characters, but "
            f"{path} does not. `openssl rand -hex 32` prints one."
        )
    return lines[0]


def check_host(host: str, *, has_token: bool, is_insecure: bool) -> None:
    """Raise `ConfigError` if a server without a token would be open to other machines."""
    if host in LOOPBACK or has_token or is_insecure:
        return
    raise ConfigError(
        f"`--host {host}` lets other machines use the server, so it needs `--token-file`. "
        "`--insecure` serves without a token."
    )


def check_origins(origins: Iterable[str]) -> None:
    """Raise `ConfigError` if an origin is not as browsers send it, so that it would never match."""
    for origin in origins:
        if not _ORIGIN.fullmatch(origin):
            raise ConfigError(
                "`--cors` must be scheme, host and port in lower case, such as "
                f"https://example.org or http://localhost:3000, but is '{origin}'."
            )


def is_token(given: str | None, token: str) -> bool:
    """Return whether a token is the right one; the time does not depend on its characters."""
    if given is None:
        return False
    # Digests have equal lengths, so that the time does not depend on the length either.
    pair = (sha256(one.encode("utf-8", "replace")).digest() for one in (given, token))
    return hmac.compare_digest(*pair)


def bearer_token(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Return the token of the header `Authorization: Bearer TOKEN`, if there is one."""
    value = _header(headers, b"authorization") or ""
    kind, _, token = value.partition(" ")
    return token.strip() if kind.lower() == "bearer" else None


class Guard:
    """Middleware that refuses requests before their body is read, and adds headers to replies."""

    def __init__(self, app: ASGIApp, state: ServerState) -> None:
        self._app, self._state = app, state
        self._num_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        send = _with_headers(scope["path"], send, is_closing=lambda: self._state.is_draining)
        body = _Body(receive, self._reserve, self._state.limits.body)
        try:
            self._check(scope)
            body.expect(_header(scope["headers"], b"content-length"))
        except RequestError as error:
            self._state.metrics.count_refusal(error.status)
            await error_reply(scope["path"], error)(scope, receive, send)
            return
        try:
            await self._app(scope, body.receive, send)
        finally:
            self._num_bytes -= body.reserved

    def _check(self, scope: Scope) -> None:
        """Raise `RequestError` if the request comes from a foreign page or has no token."""
        access, headers = self._state.access, scope["headers"]
        host = _header(headers, b"host") or ""
        if access.hosts is not None and _host_name(host) not in access.hosts:
            raise RequestError(400, "The header Host must be the address of this server.")
        origin = _header(headers, b"origin")
        is_own = origin is not None and _is_origin(origin, host)
        if origin is not None and not is_own and origin not in access.origins:
            raise RequestError(403, "Pages of this origin may not use the server (`--cors`).")
        path = scope["path"]
        if access.token is None or path in (*PUBLIC, *LIBRETRANSLATE) or path.startswith(STATIC):
            return
        if not is_token(bearer_token(headers), access.token):
            raise RequestError(
                401,
                "The header `Authorization: Bearer TOKEN` with the server's token is missing or "
                "wrong.",
                {"WWW-Authenticate": "Bearer"},
            )

    def _reserve(self, num: int) -> None:
        """Count bytes of bodies; raise if all of them would take too much memory."""
        if self._num_bytes + num > self._state.limits.bodies:
            raise busy("The server is reading too many large requests. Try again later.", 1)
        self._num_bytes += num


class _Body:
    """Body of a request, whose size is limited while it is received."""

    def __init__(self, receive: Receive, reserve: Callable[[int], None], limit: int) -> None:
        self._receive, self._reserve, self._limit = receive, reserve, limit
        self._num_received = 0
        self.reserved = 0

    def expect(self, length: str | None) -> None:
        """Reserve memory for the stated length, if there is one."""
        if length is not None and length.isdecimal():
            self._extend(int(length))

    async def receive(self) -> Message:
        """Return the next part of the body."""
        message = await self._receive()
        self._num_received += len(message.get("body", b""))
        if self._num_received > self.reserved:
            self._extend(self._num_received)
        return message

    def _extend(self, length: int) -> None:
        if length > self._limit:
            raise RequestError(413, f"A request may have {self._limit:,} bytes, but has more.")
        self._reserve(length - self.reserved)
        self.reserved = length


def _with_headers(path: str, send: Send, *, is_closing: Callable[[], bool]) -> Send:
    is_page = path in ("/", "/docs") or path.startswith(STATIC)
    policy = PAGE_POLICY if is_page else DATA_POLICY
    added: list[tuple[bytes, bytes]] = [*HEADERS, (b"content-security-policy", policy.encode())]
    # Files of the page belong together, so browsers ask each time whether they have changed.
    added.append((b"cache-control", b"no-cache" if is_page else b"no-store"))

    async def send_with_headers(message: Any) -> None:
        if message["type"] == "http.response.start":
            closing = [(b"connection", b"close")] if is_closing() else []
            message["headers"] = [*message.get("headers", ()), *added, *closing]
        await send(message)

    return send_with_headers


def _header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str | None:
    return next((value.decode("latin-1") for key, value in headers if key == name), None)


def _is_origin(origin: str, host: str) -> bool:
    """Return whether a page of an origin comes from this server."""
    return origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}")


def _host_name(host: str) -> str | None:
    """Return the name in a header Host, without the port."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None
