"""The page about the server under load."""

import json
import subprocess
from pathlib import Path

import measure
from components import Page
from plan import read_plans
from results import read_results
from serving_tables import serving_load

RESULT = {
    "batch": 64, "connections": 1000, "sentences_per_second": 1234.56, "latency_p50": 0.0123,
    "latency_p95": None, "replies": 74073, "busy": 12, "errors": {"503": 1}, "lost": 0,
    "swapped": 0, "different": 2,
}  # fmt: skip
REPORT = {
    "hardware": "A processor", "threads": 2, "torch": "2", "commit": "c", "regard": "0",
    "command": "regard bench serve", "run": "mine", "recipe": "vaswani2017-small",
    "sentences": 1000, "seconds": 60.0, "results": [RESULT, {**RESULT, "batch": 1}],
}  # fmt: skip


def page(value):
    plan = read_plans()["serving"]
    return Page(plan, {} if value is None else {"a.json": value}, Path(), Path())


def test_tables_have_all_measurements():
    text = serving_load(page(REPORT), "a.json")
    assert "1,000 sentences, 60 seconds each" in text
    row = "| 1,000 | 1,234.6 | 12 ms | – | 74,073 | 12 | 1 | 0 | 0 | 2 |"
    assert f"| up to 64 {row}" in text
    assert f"| none {row}" in text
    assert serving_load(page(None), "a.json") == "Not measured yet."


def test_the_report_of_the_command_becomes_a_result_file(tiny_run, tmp_path, monkeypatch):
    commands = []

    def run(command, check):
        commands.append(command)
        Path(command[-1]).write_text(json.dumps(REPORT))

    monkeypatch.setattr(subprocess, "run", run)
    options = {"run": str(tiny_run.folder), "name": "x", "batch": "1,64"}
    measure.BENCHMARKS["serving_load"](tmp_path, options)
    (command,) = commands
    assert command[3:5] == ["bench", "serve"]
    assert command[command.index("--batch") + 1] == "1,64"
    assert command[command.index("--seconds") + 1] == "60"
    value = read_results(tmp_path / "serving-x.json")
    assert value["results"][0]["replies"] == 74073
    assert value["command"] == (
        f"python benchmarks/run.py serving --set run={tiny_run.folder.name} name=x batch=1,64"
    )
