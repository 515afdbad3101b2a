"""A server in a process of its own: load, the end of the process, hostile requests.

Short by default; with the mark `faults`, as long as the server must withstand.
"""

import asyncio
import http.client
import json
import random
import socket
import threading
import time
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

import regard
from regard.bench.serve.load import Address, Load, run_load

LENGTHS = ["short", pytest.param("long", marks=pytest.mark.faults)]


@pytest.fixture(scope="module")
def expected(tiny_run):
    """Predictions of distinct sources."""
    sources = [" ".join(format(number, "b").translate({48: "a", 49: "b"})) for number in range(200)]
    sources = list(dict.fromkeys(sources))
    task = regard.load(tiny_run.folder, device="cpu")
    return dict(zip(sources, task.translate(sources), strict=True))


@pytest.mark.faults
def test_no_reply_is_lost_or_swapped_under_load(served_runs, starting, expected):
    connections, seconds = 1000, 60.0
    with starting(served_runs[0]) as server:
        address = Address.of(server.url)
        load = asyncio.run(run_load(address, expected, connections=connections, seconds=seconds))
        assert server.stop() == 0
    assert set(load.statuses) <= {200, 429}
    assert load.statuses[200] == len(load.latencies) > connections / 2
    assert (load.num_lost, load.num_refused, load.swapped, load.different) == (0, 0, [], [])


@pytest.mark.parametrize("length", LENGTHS)
def test_load_and_sigterm_lose_no_accepted_request(served_runs, starting, expected, length):
    connections, seconds = (50, 1.0) if length == "short" else (500, 10.0)
    with starting(served_runs[0]) as server:
        load, address = Load(), Address.of(server.url)

        def send():
            asyncio.run(
                run_load(
                    address, expected, connections=connections, seconds=seconds + 20, load=load
                )
            )

        thread = threading.Thread(target=send)
        thread.start()
        time.sleep(seconds)
        assert load.statuses[200]
        assert server.stop() == 0
        thread.join(30)
    assert set(load.statuses) <= {200, 429}
    # Connections end when the server refuses new ones.
    assert (load.num_lost, load.swapped, load.different) == (0, [], [])
    assert load.num_refused == connections
    assert f"Stopped after {load.statuses[200]:,} requests." in "".join(server.log)


PATHS = (
    "/v1/predict", "/v1/attention", "/v1/alternatives", "/v1/beam", "/v1/embed", "/v1/embeddings",
    "/v1/attribution", "/v1/what-if", "/translate", "/detect",
)  # fmt: skip

SEED_BODIES = (
    {"sources": ["a b", "c"], "num_best": 2, "search": {"beams": 2, "temperature": 0.5}},
    {"source": "a b c", "target": "c b", "layers": "all"},
    {"source": "a", "num": 3, "prefix": "b"},
    {"source": "a b", "edit": {"kind": "source_word", "position": 1, "word": "c"}},
    {"sources": {"data": "aGVsbG8=", "text": "a"}},
    {"model": "en-de", "input": ["a", "b"], "encoding_format": "base64"},
    {"q": "<b>a</b> b", "source": "en", "target": "de", "format": "html", "alternatives": 1},
)

VALUES = (
    None, True, -1, 0, 2**63, 10**400, -1e308, "", "\x00", "é\u202e", "a" * 300, [], {}, [[]],
    {"beams": 10**9}, {"seed": 2**62}, {"max_extra": 0}, {"top_k": 2**40}, {"groups": 7},
)  # fmt: skip


def fuzzed_body(generator):
    """Return the bytes of a request that is valid, almost valid or not valid at all."""
    body = dict(generator.choice(SEED_BODIES))
    for _ in range(generator.randrange(3)):
        body[generator.choice([*body, "search", "stream", "unknown"])] = generator.choice(VALUES)
    content = bytearray(json.dumps(body).encode())
    for _ in range(generator.choice((0, 0, 1, 5))):
        start = generator.randrange(len(content))
        content[start : start + generator.randrange(4)] = generator.randbytes(
            generator.randrange(4)
        )
    return bytes(content)


@pytest.mark.parametrize("length", LENGTHS)
def test_fuzzed_bodies_leave_the_server_alive(live, length):
    generator = random.Random(1)
    parts = urlsplit(live.url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    kinds = ("application/json",) * 8 + ("multipart/form-data; boundary=x", "text/plain", "")
    statuses = set()
    for _ in range(60 if length == "short" else 10_000):
        path, content = generator.choice(PATHS), fuzzed_body(generator)
        headers = {"Content-Type": generator.choice(kinds)}
        connection.request("POST", path, content, headers)
        reply = connection.getresponse()
        reply.read()
        assert reply.status < 500, (path, content)
        statuses.add(reply.status)
    assert {200, 415, 422} <= statuses
    connection.request("GET", "/readyz")
    assert connection.getresponse().status == 200
    connection.close()


HEAD = (
    b"POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Content-Length: "
)
BODY = b'{"sources": "a b"}'


def connect(server, content):
    """Return a connection that has sent some bytes."""
    parts = urlsplit(server.url)
    connection = socket.create_connection((parts.hostname, parts.port), timeout=20)
    connection.sendall(content)
    return connection


def read_all(connection):
    """Return what a server sends until it closes a connection."""
    with connection:
        return b"".join(iter(lambda: connection.recv(65_536), b""))


def test_connections_without_a_complete_head_are_closed(served_runs, starting):
    with starting(served_runs[0], "--max-seconds", "2") as server:
        started = time.perf_counter()
        silent, slow = connect(server, b""), connect(server, HEAD)
        request = HEAD + b"18\r\n\r\n" + BODY
        second = connect(server, request + HEAD)
        several = connect(server, request)
        assert read_all(silent) == b""
        assert read_all(slow).startswith(b"HTTP/1.1 408 ")
        replies = read_all(second)
        assert replies.startswith(b"HTTP/1.1 200 ") and b"HTTP/1.1 408 " in replies
        assert 1.9 < time.perf_counter() - started < 10
        # An idle connection is kept for the next request.
        several.sendall(request.replace(b"Host", b"Connection: close\r\nHost"))
        assert read_all(several).count(b"HTTP/1.1 200 ") == 2


def test_clients_that_leave_are_no_fault_of_the_server(served_runs, starting):
    with starting(served_runs[0]) as server:
        for content in (HEAD + b"18\r\n\r\n{", HEAD[:-16] + b"Transfer-Encoding: chunked\r\n\r\nz"):
            connect(server, content).close()
        for _ in range(100):
            with urlopen(f"{server.url}/metrics") as reply:
                lines = reply.read().decode().splitlines()
            if 'regard_requests_total{route="/v1/predict",status="499"} 2.0' in lines:
                break
            time.sleep(0.05)
        else:
            raise AssertionError(lines)
        assert server.stop() == 0
    assert not [line for line in server.log if "Disconnect" in line or "Traceback" in line]


def test_requests_that_cannot_be_read_leave_the_log_empty(served_runs, starting):
    form = b"multipart/form-data; boundary=x"
    with starting(served_runs[0]) as server:
        for kind, content in (
            (form, b"--{"),
            (form, b"--x\r\nContent-Disposition: form-data; name=secret"),
            (form, b"secret"),
            (b"application/json", b"{secret"),
            (b"application/x-www-form-urlencoded", b"%zz=%"),
        ):
            head = b"POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
            head += b"Content-Type: %b\r\nContent-Length: %d\r\n\r\n" % (kind, len(content))
            assert read_all(connect(server, head + content)).startswith(b"HTTP/1.1 4")
        assert read_all(connect(server, b"secret\r\n\r\n")).startswith(b"HTTP/1.1 400")
        assert server.stop() == 0
    assert [line.split()[0] for line in server.log] == ["Serving", "Stopping:", "Stopped"]
