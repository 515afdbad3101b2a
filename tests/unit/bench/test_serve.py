"""The load generator of `regard bench serve` detects every wrong reply."""

import asyncio
import json

import pytest

from regard.bench.serve.load import Address, run_load
from regard.core.errors import ConfigError

EXPECTED = {"a": "A", "b": "B"}


def reply(source, *, text=None, status=200, head=""):
    text = EXPECTED[source] if text is None else text
    body = json.dumps({"results": [{"source": source, "predictions": [{"text": text}]}]}).encode()
    return b"HTTP/1.1 %d OK\r\n%sContent-Length: %d\r\n\r\n%s" % (
        status, head.encode(), len(body), body,
    )  # fmt: skip


def measure(answer, **options):
    """Send load to a server whose replies are those of a function; return the measurements."""

    async def handle(reader, writer):
        number = 0
        while line := await reader.readline():
            length = 0
            while line.strip():
                if line.lower().startswith(b"content-length"):
                    length = int(line.split(b":")[1])
                line = await reader.readline()
            source = json.loads(await reader.readexactly(length))["sources"]
            found = answer(source, number)
            number += 1
            if found is None:
                break
            writer.write(found)
        writer.close()

    async def run():
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        load = await run_load(
            Address("127.0.0.1", port), EXPECTED, connections=2, seconds=0.1, **options
        )
        server.close()
        return load

    return asyncio.run(run())


def test_correct_replies_are_counted():
    load = measure(lambda source, number: reply(source))
    assert load.statuses[200] == len(load.latencies) > 2
    assert (load.swapped, load.different, load.num_lost, load.num_refused) == ([], [], 0, 0)
    assert load.elapsed >= 0.1


def test_swapped_and_different_replies_are_found():
    assert measure(lambda source, number: reply("a")).swapped[0] == ("b", "a")
    assert ("a", "x") in measure(lambda source, number: reply(source, text="x")).different


def test_lost_and_refused_requests_are_counted():
    load = measure(lambda source, number: None if number else reply(source))
    assert load.num_lost > 0
    load = measure(lambda source, number: None)
    assert (load.num_lost, load.num_refused) == (0, 2)


def test_connections_are_opened_again_after_they_are_closed():
    load = measure(lambda source, number: reply(source, head="Connection: close\r\n"))
    assert load.statuses[200] > 2
    assert load.num_lost == 0


def test_a_busy_server_is_asked_again_after_a_pause():
    load = measure(lambda source, number: reply(source, status=429, head="Retry-After: 60\r\n"))
    assert load.statuses == {429: 2}


@pytest.mark.parametrize("url", ["http://example.org:80", "https://127.0.0.1:1", "127.0.0.1:1"])
def test_other_machines_get_no_load(url):
    with pytest.raises(ConfigError, match="on this machine"):
        Address.of(url)
