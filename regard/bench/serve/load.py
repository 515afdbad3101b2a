"""Load on a server of this machine: connections that send one request after another."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from regard.core.errors import ConfigError
from regard.core.files import allow_open_files

LOOPBACK = ("127.0.0.1", "::1", "localhost")

MAX_PAUSE = 1.0
"""Maximum seconds that a connection waits after a refusal, if the server names more."""


@dataclass
class Load:
    """Measurements of all connections."""

    latencies: list[float] = field(default_factory=list)
    """Seconds of each request that was answered."""
    statuses: Counter[int] = field(default_factory=Counter)
    """Number of replies by their status."""
    num_lost: int = 0
    """Requests whose connection was closed without a reply, but not a new connection."""
    num_refused: int = 0
    """New connections that were refused or closed before the first reply."""
    elapsed: float = 0.0
    """Seconds until the last reply."""
    swapped: list[tuple[str, str]] = field(default_factory=list)
    """Source of a request and of its reply, where they differ."""
    different: list[tuple[str, str]] = field(default_factory=list)
    """Source and prediction, where the prediction is not the expected one."""


@dataclass(frozen=True)
class Address:
    """Address of a server."""

    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> "Address":
        """Return the address in a URL; raise `ConfigError` if it is not on this machine."""
        parts = urlsplit(url)
        if parts.scheme != "http" or parts.hostname not in LOOPBACK or parts.port is None:
            raise ConfigError(
                "The server must be on this machine, such as http://127.0.0.1:8000, but is "
                f"'{url}'."
            )
        return cls(parts.hostname, parts.port)


async def run_load(
    address: Address,
    expected: Mapping[str, str],
    *,
    connections: int,
    seconds: float,
    load: Load | None = None,
) -> Load:
    """Send requests over several connections and check the replies.

    Each connection sends the next request when it has the reply to the one before, so there are
    never more requests than connections.

    Args:
        address: The server.
        expected: Prediction of each source.
        connections: Number of connections.
        seconds: Time after which no more requests are sent.
        load: Receives the measurements.
    """
    load = Load() if load is None else load
    allow_open_files()
    started = time.perf_counter()
    end = started + seconds
    clients = (_Client(address, expected, load, end=end) for _ in range(connections))
    await asyncio.gather(*(client.run(number) for number, client in enumerate(clients)))
    load.elapsed = time.perf_counter() - started
    return load


class _Client:
    """One connection, which is opened again when the server closes it."""

    def __init__(
        self, address: Address, expected: Mapping[str, str], load: Load, *, end: float
    ) -> None:
        self._address, self._expected, self._load, self._end = address, expected, load, end
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._is_new = True
        """Whether the connection has had no reply yet."""

    async def run(self, index: int) -> None:
        """Send sources in turn until the end, from an index on."""
        sources = list(self._expected)
        try:
            while time.perf_counter() < self._end:
                if not await self._send(sources[index % len(sources)]):
                    return
                index += 1
        finally:
            self._close()

    async def _send(self, source: str) -> bool:
        """Send a source and check the reply; return False if there is no server any more."""
        body = json.dumps({"sources": source}).encode()
        head = (
            f"POST /v1/predict HTTP/1.1\r\nHost: {self._address.host}:{self._address.port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        if self._writer is None:
            try:
                self._reader, self._writer = await asyncio.open_connection(
                    self._address.host, self._address.port
                )
            except OSError:
                self._load.num_refused += 1
                return False
            self._is_new = True
        started = time.perf_counter()
        assert self._writer is not None
        try:
            self._writer.write(head.encode() + body)
            status, headers, content = await self._read()
        except (OSError, asyncio.IncompleteReadError):
            self._load.num_refused += self._is_new
            self._load.num_lost += not self._is_new
            self._close()
            return not self._is_new
        self._is_new = False
        self._load.statuses[status] += 1
        if status == 200:
            self._load.latencies.append(time.perf_counter() - started)
            self._check(source, content)
        if headers.get("connection") == "close":
            self._close()
        if status in (429, 503):
            await asyncio.sleep(min(MAX_PAUSE, float(headers.get("retry-after", 1))))
        return True

    async def _read(self) -> tuple[int, dict[str, str], bytes]:
        assert self._reader is not None
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.strip().split("\r\n")
        pairs = (line.partition(":") for line in lines)
        headers = {name.strip().lower(): value.strip().lower() for name, _, value in pairs}
        content = await self._reader.readexactly(int(headers["content-length"]))
        return int(first.split()[1]), headers, content

    def _check(self, source: str, content: bytes) -> None:
        (result,) = json.loads(content)["results"]
        if result["source"] != source:
            self._load.swapped.append((source, result["source"]))
        elif (text := result["predictions"][0]["text"]) != self._expected[source]:
            self._load.different.append((source, text))

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None
