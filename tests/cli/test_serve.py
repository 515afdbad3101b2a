"""`regard serve` refuses what it cannot serve; `regard bench serve` measures a server."""

import json
import socket
import sys

import pytest

from regard.bench.serve import bench


def test_other_machines_need_a_token(refused, tiny_run, tmp_path):
    message = refused("serve", tiny_run.folder, "--host", "0.0.0.0")
    assert "--token-file" in message and "--insecure" in message
    message = refused("serve", tiny_run.folder, "--token-file", tmp_path / "missing")
    assert str(tmp_path / "missing") in message


def test_runs_that_cannot_be_served(refused, tiny_run, tmp_path):
    assert str(tmp_path) in refused("serve", tmp_path, "--port", 0).splitlines()[-1]
    folder = tiny_run.folder
    assert "two runs" in refused("serve", f"a={folder}", f"a={folder}", "--port", 0).lower()


def test_limits_that_are_no_limits(refused, tiny_run):
    assert "`beams`" in refused("serve", tiny_run.folder, "--max-beams", 0)


def test_a_port_that_is_taken(refused, tiny_run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"port {port}" in refused("serve", tiny_run.folder, "--port", port)


def test_missing_packages_are_named(refused, tiny_run, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    message = refused("serve", tiny_run.folder)
    assert "uvicorn" in message and "pip install 'regard[serve]'" in message


def test_bench_serve_measures_each_size_of_batches(regard, tiny_run, monkeypatch):
    monkeypatch.setattr(bench, "WARM_UP", 0.1)
    result = regard(
        "bench", "serve", tiny_run.folder, "--connections", "4", "--batch", "1,8",
        "--seconds", "0.3", "--json", "--device", "cpu",
    )  # fmt: skip
    report = json.loads(result.out)
    assert [(one["batch"], one["connections"]) for one in report["results"]] == [(1, 4), (8, 4)]
    for one in report["results"]:
        assert one["replies"] > 0
        assert one["latency_p50"] <= one["latency_p95"]
        assert (one["errors"], one["lost"], one["swapped"], one["different"]) == ({}, 0, 0, 0)


def test_bench_serve_prints_a_table(regard, tiny_run, monkeypatch):
    result = {
        "batch": 64, "connections": 1000, "sentences_per_second": 1234.56, "latency_p50": 0.0123,
        "latency_p95": None, "busy": 12, "errors": {503: 1}, "lost": 2, "swapped": 3,
        "different": 4,
    }  # fmt: skip
    report = {
        "hardware": "A processor", "threads": 2, "torch": "2", "run": "mine", "sentences": 1000,
        "seconds": 60.0, "results": [result],
    }  # fmt: skip
    monkeypatch.setattr(bench, "bench_serve", lambda settings: report)
    printed = regard("bench", "serve", tiny_run.folder)
    assert printed.lines[-1].split() == [
        "64",
        "1,000",
        "1,234.6",
        "12.3",
        "ms",
        "–",
        "12",
        "6",
        "4",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "needs a run"),
        (["RUN", "--connections", "0"], "`--connections`"),
        (["RUN", "--batch", "x"], "`--batch`"),
        (["RUN", "--seconds", "0"], "`--seconds`"),
    ],
)
def test_bench_serve_refuses(refused, tiny_run, arguments, message):
    given = [tiny_run.folder if one == "RUN" else one for one in arguments]
    assert message in refused("bench", "serve", *given)


@pytest.mark.parametrize("display", ["", ":0"])
def test_the_page_is_opened_only_on_a_screen(monkeypatch, display):
    from regard.serve import server

    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("DISPLAY", display)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    server._open_browser("http://127.0.0.1:8000")
    assert opened == ["http://127.0.0.1:8000"] * bool(display)
