"""Limits of requests: each is a clear refusal."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch

from regard.serve.batching import Batcher, Job
from regard.serve.errors import RequestError
from tests.serve.conftest import LIMITS


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"sources": []}, 422, "at least one source"),
        ({"sources": ["a"] * 9}, 413, "8 sources, but has 9"),
        ({"sources": "a" * 201}, 413, "200 characters, but one has 201"),
        ({"sources": "a", "prefix": "a" * 201}, 413, "200 characters"),
        ({"sources": "a", "num_best": 9}, 422, "`num_best` must be at most 8"),
        ({"sources": "a", "num_best": 0}, 422, "`num_best`"),
        ({"sources": "a", "search": {"beams": 9}}, 422, "`search.beams` must be at most 8"),
        ({"sources": "a", "search": {"max_extra": 513}}, 422, "`search.max_extra`"),
        ({"sources": "a", "search": {"precision": "auto"}}, 422, "`search.precision` must be"),
        ({"sources": "a", "search": {"max_ratio": 50}}, 422, "`search.max_ratio`"),
        ({"sources": "a", "search": {"beams": "many"}}, 422, "`search.beams` must be int"),
        ({"sources": "a", "search": {"beam": 1}}, 422, "Did you mean 'beams'"),
        ({"sources": "a", "search": {"temperature": -1}}, 422, "temperature"),
        ({"sources": "a", "unknown": 1}, 422, "`unknown`"),
        ({"sources": {"data": "!"}}, 422, "must be a text, but is an upload"),
        ({}, 422, "`sources`"),
    ],
)
def test_requests_beyond_a_limit(client, body, status, message):
    reply = client.post("/v1/predict", json=body)
    assert reply.status_code == status, reply.text
    assert message in reply.json()["error"]


def test_large_bodies_are_refused_before_they_are_read(client):
    reply = client.post("/v1/predict", content=b" " * 200_001)
    assert reply.status_code == 413
    # Without a stated length, as soon as there is too much.
    reply = client.post("/v1/predict", content=(b" " * 50_000 for _ in range(5)))
    assert reply.status_code == 413
    assert client.state.metrics.in_progress._value.get() == 0


def test_content_that_is_no_request(client):
    for content, kind, status in (
        (b"{", "application/json", 422),
        (b"[" * 50_000, "application/json", 422),
        (b'{"sources": "\\ud800"}', "application/json", 422),
        (b"\xff\xfe", "application/json", 422),
        (b"a", "text/plain", 415),
        (b"a", "multipart/form-data", 400),
        (b"a", "multipart/form-data; boundary=b", 400),
    ):
        reply = client.post("/v1/predict", content=content, headers={"Content-Type": kind})
        assert reply.status_code == status, (content[:20], reply.text)
    assert client.get("/v1/predict").status_code == 405
    assert client.post("/nothing").status_code == 404


def test_a_slow_request_is_ended(served_runs, serving):
    with serving(served_runs[0], limits=replace(LIMITS, seconds=0.2)) as client:
        (run,) = client.state.runs.ready.values()
        release = threading.Event()
        run.task.predict = lambda *args, **options: release.wait(5)
        started = time.perf_counter()
        reply = client.post("/v1/predict", json={"sources": "a"})
        assert (reply.status_code, time.perf_counter() - started < 2) == (408, True)
        assert run.batcher.num_waiting == 0
        release.set()


def test_a_slow_explanation_is_ended(served_runs, serving):
    with serving(served_runs[0], limits=replace(LIMITS, seconds=0.3)) as client:
        body = {"source": " ".join("abc" * 33), "methods": ["integrated_gradients", "erasure"]}
        body |= {"target": " ".join("abc" * 33), "is_measured": True}
        started = time.perf_counter()
        assert client.post("/v1/attribution", json=body).status_code == 408
        (run,) = client.state.runs.ready.values()
        asyncio.run(run.batcher.submit(Job("key", [1], list)))
        assert time.perf_counter() - started < 3


def test_a_full_queue(served_runs, serving):
    with serving(served_runs[0], limits=replace(LIMITS, queue=4)) as client:
        (run,) = client.state.runs.ready.values()
        predict, release, started = run.task.predict, threading.Event(), threading.Event()

        def wait(*args, **options):
            started.set()
            release.wait(5)
            return predict(*args, **options)

        run.task.predict = wait
        replies = []

        def send(num):
            body = {"sources": ["a b"] * num}
            replies.append(client.post("/v1/predict", json=body))

        threads = [threading.Thread(target=send, args=(num,)) for num in (1, 4)]
        threads[0].start()
        started.wait(5)
        threads[1].start()
        while run.batcher.num_waiting < 4:
            time.sleep(0.01)
        reply = client.post("/v1/predict", json={"sources": "a"})
        assert reply.status_code == 429
        assert int(reply.headers["retry-after"]) >= 1
        release.set()
        for thread in threads:
            thread.join()
        assert [one.status_code for one in replies] == [200, 200]


def test_a_cancelled_request_leaves_the_queue_and_its_batch():
    """Run with a batcher alone, whose function counts the items that it computes."""
    computed, release, started = [], threading.Event(), threading.Event()

    def compute(items):
        started.set()
        release.wait(5)
        computed.extend(items)
        return items

    async def run():
        batcher = Batcher("a", max_batch=2, max_waiting=4)
        first = asyncio.ensure_future(batcher.submit(Job("key", [1], compute)))
        await asyncio.to_thread(started.wait, 5)
        second = asyncio.ensure_future(batcher.submit(Job("key", [2, 3, 4], compute)))
        await asyncio.sleep(0.01)
        with pytest.raises(RequestError, match="waiting"):
            await batcher.submit(Job("key", [5, 6], compute))
        second.cancel()
        await asyncio.sleep(0.01)
        assert batcher.num_waiting == 0
        third = asyncio.ensure_future(batcher.submit(Job("key", [5, 6], compute)))
        await asyncio.sleep(0.01)
        release.set()
        found = await asyncio.gather(first, third)
        await asyncio.to_thread(batcher.close)
        with pytest.raises(RequestError, match="stopping"):
            await batcher.submit(Job("key", [7], compute))
        return found

    assert asyncio.run(run()) == [[1], [5, 6]]
    assert computed == [1, 5, 6]


def test_jobs_that_have_waited_too_long_are_refused():
    release = threading.Event()

    def compute(items):
        release.wait(5)
        return items

    async def run():
        batcher = Batcher("a", max_batch=1, max_waiting=4, max_seconds=0.05)
        jobs = [Job("key", [number], compute) for number in range(2)]
        tasks = [asyncio.ensure_future(batcher.submit(job)) for job in jobs]
        await asyncio.sleep(0.1)
        release.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert batcher.num_waiting == 0
        return found

    first, second = asyncio.run(run())
    assert first == [0]
    assert (second.status, second.headers["Retry-After"]) == (429, "1")


def test_no_request_is_refused_before_the_rate_is_known():
    async def run():
        batcher = Batcher("a", max_batch=1, max_waiting=4, max_seconds=0.5)
        jobs = [Job("key", [number], list) for number in range(4)]
        return await asyncio.gather(*map(batcher.submit, jobs))

    assert asyncio.run(run()) == [[0], [1], [2], [3]]


def test_items_of_large_requests_take_turns():
    batches, release = [], threading.Event()

    def compute(items):
        batches.append(items)
        return items

    async def run():
        batcher = Batcher("a", max_batch=4, max_waiting=100)
        first = asyncio.ensure_future(
            batcher.submit(Job("other", [0], lambda _: [release.wait(5)]))
        )
        await asyncio.sleep(0.05)
        sizes = ((0, 6), (10, 1), (20, 3))
        jobs = [Job("key", list(range(start, start + num)), compute) for start, num in sizes]
        others = [asyncio.ensure_future(batcher.submit(job)) for job in jobs]
        await asyncio.sleep(0.05)
        release.set()
        assert await first == [True]
        return await asyncio.gather(*others)

    assert asyncio.run(run()) == [[0, 1, 2, 3, 4, 5], [10], [20, 21, 22]]
    assert batches == [[0, 10, 20, 1], [2, 21, 3, 22], [4, 5]]


def test_a_failing_item_fails_its_request_only():
    def compute(items):
        if 2 in items:
            raise ValueError("two")
        return [-item for item in items]

    async def run():
        batcher = Batcher("a", max_batch=8, max_waiting=100)
        jobs = [Job("key", items, compute) for items in ([1], [2, 3], [4, 5])]
        return await asyncio.gather(*map(batcher.submit, jobs), return_exceptions=True)

    first, second, third = asyncio.run(run())
    assert (first, third) == ([-1], [-4, -5])
    assert isinstance(second, ValueError)


def test_a_run_that_fails_leaves_the_others(served_runs, serving, tmp_path, caplog):
    with serving(*served_runs, f"broken={tmp_path}") as client:
        models = {one["id"]: one["status"] for one in client.get("/v1/models").json()["data"]}
        assert models == {"en-de": "ready", "second": "ready", "broken": "failed"}
        first, word = client.state.runs.ready["en-de"], "confidential"

        def fail(*args, **options):
            raise RuntimeError(word)

        first.task.predict = fail
        reply = client.post("/v1/predict", json={"sources": "a"})
        assert reply.status_code == 500
        assert "confidential" not in reply.text
        body = {"sources": "a b", "model": "second"}
        assert client.post("/v1/predict", json=body).status_code == 200
        assert client.post("/v1/predict", json={**body, "model": "broken"}).status_code == 503
        assert client.get("/readyz").status_code == 200
    assert "confidential" not in caplog.text


def test_runs_compute_with_the_number_of_threads_at_the_start(served_runs, serving):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with serving(*served_runs) as client:
            numbers = {}
            for name, run in client.state.runs.ready.items():
                predict = run.task.predict

                def count(*args, name=name, predict=predict, **options):
                    numbers[name] = torch.get_num_threads()
                    return predict(*args, **options)

                run.task.predict = count
                # A search of one core in another thread.
                with ThreadPoolExecutor(1) as pool:
                    pool.submit(torch.set_num_threads, 1).result()
                body = {"model": name, "sources": "a b"}
                assert client.post("/v1/predict", json=body).status_code == 200
            assert numbers == dict.fromkeys(client.state.runs.ready, 2)
    finally:
        torch.set_num_threads(before)
