"""A server in a process of its own: load, the end of the process, hostile requests.

Short by default; with the mark `faults`, as long as the server must withstand.
"""

import asyncio
import http.client
import json
import random
import threading
import time
from urllib.parse import urlsplit

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
