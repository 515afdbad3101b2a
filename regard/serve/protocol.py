"""HTTP connections that end if a client takes too long to send the head of a request."""

import asyncio
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

TOO_SLOW = b"The head of a request took too long."


class LimitedProtocol(H11Protocol):
    """HTTP/1.1 connection with a limit of time for the head of a request.

    Otherwise clients that open connections and never send a request would take all of them.
    Between two requests, uvicorn itself limits the time until the first byte.
    """

    head_seconds: ClassVar[float] = 60.0
    """Time in which the head of a request must arrive."""
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(self.head_seconds, self._end)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the wait."""
        self._stop_timer()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Handle received bytes; wait for the rest of a head if it is not complete."""
        super().handle_events()
        is_begun = self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])
        if not is_begun:
            self._stop_timer()
        elif self._timer is None:
            self._timer = self.loop.call_later(self.head_seconds, self._end)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self) -> None:
        self._timer = None
        if self.conn.their_state is not h11.IDLE or self.transport.is_closing():
            return
        if self.conn.trailing_data[0]:
            headers = [
                (b"content-type", b"text/plain; charset=utf-8"),
                (b"content-length", str(len(TOO_SLOW)).encode()),
                (b"connection", b"close"),
            ]
            head = h11.Response(status_code=408, headers=headers, reason=b"Request Timeout")
            for event in (head, h11.Data(data=TOO_SLOW), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def limit_head(seconds: float) -> type[asyncio.Protocol]:
    """Return the protocol of connections whose request heads arrive within a time."""
    return type("Protocol", (LimitedProtocol,), {"head_seconds": seconds})
