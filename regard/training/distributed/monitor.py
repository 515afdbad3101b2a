"""Monitor of the processes of a training: if one of them dies, the others end within seconds."""

import json
import os
import secrets
import selectors
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

GRACE_SECONDS = 2.0
"""Time that a process has to report an error of its own, before it ends because of another one."""
EXIT_CODE = 1
"""Exit code of a process that ends because another one has died."""
MAX_LINE = 1 << 16
"""Maximum length of a message in bytes."""
KEEP_ALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
"""Seconds and number of probes after which the connection to a vanished machine is closed."""


@dataclass
class Peer:
    """Another process, in the monitor of the first process."""

    rank: int
    host: str
    pid: int
    error: str = ""
    """The error that it has reported."""

    def describe(self) -> str:
        """Return the message about its end."""
        name = f"process {self.rank} (PID {self.pid} on {self.host})"
        if self.error:
            return f"{name}: {self.error}"
        return (
            f"{name} has died, so all processes end. The last checkpoint is complete; `--resume` "
            "continues from it."
        )


class Monitor:
    """Connections of the first process to all others.

    The kernel closes the connections of a process that dies, so the others know at once, even if
    they wait in a call of a library. Messages are lines of JSON.

    Args:
        rank: Number of this process.
        host: Name of the machine of the first process.
        from_first: Returns in all processes what the first one computes.
    """

    def __init__(
        self, rank: int, host: str, *, from_first: Callable[[Callable[[], Any]], Any]
    ) -> None:
        self._rank = rank
        self._host = host
        self._is_closed = threading.Event()
        self._peers: dict[socket.socket, Peer] = {}
        port, self._token = from_first(self._listen)
        if rank:
            self._connection = socket.create_connection((host, port), timeout=60)
            self._connection.settimeout(None)
            _keep_alive(self._connection)
            about = {"rank": rank, "host": socket.gethostname(), "pid": os.getpid()}
            _send(self._connection, {"token": self._token, **about})
        watch = self._watch_first if rank else self._watch_all
        self._thread = threading.Thread(target=watch, name="monitor", daemon=True)
        self._thread.start()

    def _listen(self) -> tuple[int, str]:
        """Open a port; return its number, and a token that only the other processes know."""
        is_local = self._host in ("localhost", "127.0.0.1")
        self._server = socket.create_server(("127.0.0.1" if is_local else "", 0), backlog=1024)
        return self._server.getsockname()[1], secrets.token_hex(16)

    def close(self, error: str = "") -> None:
        """End the monitoring: this process leaves.

        Args:
            error: The message of the error that ends this process, which the first process prints.
        """
        self._is_closed.set()
        if self._rank:
            _send(self._connection, {"error": error} if error else {"bye": True})
            self._connection.close()
            return
        for connection in list(self._peers):
            _send(connection, {"dead": 0} if error else {"bye": True})
            connection.close()
        self._server.close()

    def wait(self) -> None:
        """Wait for a moment after a failed exchange: if a process has died, this one ends."""
        self._thread.join(2 * GRACE_SECONDS)

    def _watch_all(self) -> None:
        """Accept connections, and end this process and the others if one of them is closed."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._server, selectors.EVENT_READ)
            while not self._is_closed.is_set():
                for key, _ in selector.select(timeout=0.5):
                    connection: Any = key.fileobj
                    if connection is self._server:
                        connection, _ = self._server.accept()
                        _keep_alive(connection)
                        selector.register(connection, selectors.EVENT_READ, b"")
                    else:
                        self._read(selector, connection)

    def _read(self, selector: selectors.BaseSelector, connection: socket.socket) -> None:
        received = _receive(connection)
        *lines, rest = (selector.get_key(connection).data + received).split(b"\n")
        for line in lines:
            if connection not in self._peers:
                if (peer := self._greet(line)) is None:
                    received = b""  # a stranger
                    break
                self._peers[connection] = peer
                continue
            message = json.loads(line)
            if "bye" in message:
                del self._peers[connection]
                break
            self._peers[connection].error = message["error"]
        if received and len(rest) < MAX_LINE:
            selector.modify(connection, selectors.EVENT_READ, rest)
            return
        selector.unregister(connection)
        connection.close()
        if peer := self._peers.pop(connection, None):
            self._end_all(peer)

    def _greet(self, line: bytes) -> Peer | None:
        """Return the process that has sent its first line; None if it is not one of ours."""
        try:
            message = json.loads(line)
        except ValueError:
            return None
        if not isinstance(message, dict) or message.pop("token", None) != self._token:
            return None
        return Peer(**message)

    def _end_all(self, peer: Peer) -> None:
        """End all processes because one has died or reported an error."""
        # An error of all processes, such as a missing file, is reported by this one.
        if peer.error and self._is_closed.wait(GRACE_SECONDS):
            return
        for connection in self._peers:
            _send(connection, {"dead": peer.rank})
        if not self._is_closed.is_set():
            _end(f"regard: {peer.describe()}")

    def _watch_first(self) -> None:
        """Wait for a message of the first process; without one, it has died."""
        message = _receive(self._connection)
        if self._is_closed.is_set() or b"bye" in message:
            return
        if message:
            self._is_closed.wait(GRACE_SECONDS)
            _end("")
        _end(
            "regard: process 0 has died, so all processes end. The last checkpoint is complete; "
            "`--resume` continues from it."
        )


def _end(message: str) -> NoReturn:
    """End this process at once: its main thread may wait in a call that never returns."""
    if message:
        print(message, file=sys.stderr, flush=True)
    os._exit(EXIT_CODE)


def _send(connection: socket.socket, message: dict[str, Any]) -> None:
    try:
        connection.sendall(json.dumps(message).encode() + b"\n")
    except OSError:
        pass  # The other process has ended.


def _receive(connection: socket.socket) -> bytes:
    """Return received bytes; none if the connection is closed."""
    try:
        return connection.recv(1 << 16)
    except OSError:
        return b""


def _keep_alive(connection: socket.socket) -> None:
    """Let the kernel close the connection if the other machine has vanished."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEP_ALIVE.items():
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
