"""The page about training speed: the best peer of each size, shares, and what was not measured."""

import json
import subprocess
from pathlib import Path

import measure
import pytest
from components import Page
from plan import read_plans
from results import read_results
from speed_tables import speed_against_peers


def result(contender, speed, **changes):
    row = {"contender": contender, "precision": "bf16", "tokens_per_second": speed, "error": ""}
    return {**row, **changes}


def report(*results):
    return {"hardware": "A processor", "sizes": [{"size": "small", "results": list(results)}]}


def page(value):
    plan = read_plans()["training-speed"]
    return Page(plan, {} if value is None else {"a.json": value}, Path(), Path())


def test_row_names_the_fastest_peer_of_the_same_precision():
    peers = [
        result("hf", 400.0),
        result("torch", 500.0),
        result("torch", 900.0, precision="fp32"),
    ]
    value = report(result("regard", 1000.0, share=0.615), *peers)
    text = speed_against_peers(page(value), "a.json", {"small bf16": "ratio ≥ 1.5"})
    assert "| small bf16 | 1,000 | torch 500 | 2.00 | ratio ≥ 1.5 | 62 % |" in text


@pytest.mark.parametrize("peers", [[], [result("hf", 0.0, error="not installed")]])
def test_row_without_peers_has_no_ratio(peers):
    text = speed_against_peers(page(report(result("regard", 1000.0), *peers)), "a.json", {})
    assert "| small bf16 | 1,000 | – | – | – | – |" in text
    assert ("- small bf16, hf: not installed" in text) is bool(peers)


def test_missing_result_file_is_stated():
    assert speed_against_peers(page(None), "a.json", {}) == "Not measured yet."


@pytest.mark.parametrize(
    ("options", "file", "words"),
    [
        ({}, "training-speed.json", ["--size", "small,bahdanau2015,gehring2017"]),
        (
            {"name": "h200", "size": "base", "precision": "bf16"},
            "training-speed-h200.json",
            ["--size", "base", "--precision", "bf16"],
        ),
    ],
)
def test_benchmark_writes_the_report_of_the_command(tmp_path, monkeypatch, options, file, words):
    commands = []

    def run(command, *, check):
        commands.append(command)
        Path(command[-1]).write_text(json.dumps(report(result("regard", 1000.0))))

    monkeypatch.setattr(subprocess, "run", run)
    measure.speed_against_peers(tmp_path, options)
    (command,) = commands
    assert command[1:-3] == ["-m", "regard", "bench", "train", *words]
    value = read_results(tmp_path / file)
    assert value["sizes"] == report(result("regard", 1000.0))["sizes"]
    assert value["command"].startswith("python benchmarks/run.py training-speed")
