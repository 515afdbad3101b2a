"""The page about the speed of decoding: tables, reasons, and outputs that depend on the batch."""

import json
import subprocess
from pathlib import Path

import measure
import pytest
from components import Page
from decoding_tables import decoding_against_peers
from plan import read_plans
from results import read_results

SEARCH = {
    "beams": 5, "sentences_per_second": 1234.56, "tokens_per_second": 9876.5, "turns": [1.0],
    "bleu": 39.217, "equal": 0.995, "ratio": 1.5,
}  # fmt: skip
RESULT = {
    "contender": "regard", "precision": "fp32", "error": "", "searches": [SEARCH],
    "latency_p50": 0.0123, "latency_p95": 0.0456, "peak_bytes": 3 * 2**20,
}  # fmt: skip
FAILED = {**RESULT, "contender": "hf", "error": "not installed", "searches": []}
REPORT = {
    "hardware": "A processor", "threads": 2, "torch": "2", "commit": "c", "regard": "0",
    "command": "regard bench decode", "run": "mine", "recipe": "vaswani2017-small",
    "sentences": 1000, "alone": 100, "latency_beams": 5, "batch": 64, "max_margin": 1e-4,
    "results": [RESULT, FAILED],
    "batch_mates": [
        {
            "contender": "regard", "precision": "fp32", "beams": 1, "sentences": 1000,
            "changed": [{"margin": 1e-6}], "num_beyond": 0,
        }
    ],
}  # fmt: skip


def page(value):
    plan = read_plans()["decoding-speed"]
    return Page(plan, {} if value is None else {"a.json": value}, Path(), Path())


def test_tables_have_all_measurements():
    text = decoding_against_peers(page({**REPORT, "reports": [REPORT]}), "a.json")
    assert "| regard fp32 | 5 | 1,234.6 | 9,876 | 1.50 | 39.22 | 99.5 % |" in text
    assert "| regard fp32 | 12.3 ms | 45.6 ms | 3 MiB |" in text
    assert "- hf fp32: not installed" in text
    assert (
        "- regard fp32, 1 beam: 1 of 1,000 outputs differ in a batch and alone, 0 with a margin "
        "above 0.0001" in text
    )


def test_missing_result_file_is_stated():
    assert decoding_against_peers(page(None), "a.json") == "Not measured yet."


@pytest.mark.parametrize(
    ("options", "file", "num_reports", "settings"),
    [
        ({}, "decoding-speed.json", 1, ""),
        (
            {"name": "h200", "run": "x/one,two", "precision": "bf16"},
            "decoding-speed-h200.json",
            2,
            " --set name=h200 run=one,two precision=bf16",
        ),
    ],
)
def test_benchmark_writes_the_reports_of_the_command(  # noqa: PLR0917
    tmp_path, monkeypatch, options, file, num_reports, settings
):
    commands = []

    def run(command, *, check):
        commands.append(command[3:])
        if "bench" in command:
            Path(command[-1]).write_text(json.dumps(REPORT), encoding="utf-8")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.chdir(tmp_path)
    measure.decoding_against_peers(tmp_path, options)
    trained = [command for command in commands if command[0] == "train"]
    assert [command[:4] for command in trained] == [
        ["train", "multi30k", "--recipe", "vaswani2017-small"]
    ] * (not options)
    benched = [command for command in commands if command[0] == "bench"]
    assert all(command[3:5] == ["--batch-mates", "1000"] for command in benched)
    value = read_results(tmp_path / file)
    assert [one["results"] for one in value["reports"]] == [[RESULT, FAILED]] * num_reports
    assert value["hardware"] == "A processor"
    assert value["command"] == f"python benchmarks/run.py decoding-speed{settings}"
