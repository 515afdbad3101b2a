"""Trainings over HTTP: progress, rows and samples of runs that run, are finished or restarted."""

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import pytest
from fastapi.testclient import TestClient

from regard.core.errors import ConfigError
from regard.core.files import read_json, read_json_lines
from regard.runs.folder import SAMPLES, TRAINING_LOG
from regard.runs.lock import LOCK, FolderLock, is_locked
from regard.runs.saved.config import CONFIG
from regard.serve.app import build_app
from regard.serve.runs import Runs
from regard.serve.state import Access, ServerState
from regard.serve.trainings import catalog, growing_log, training
from regard.serve.trainings.catalog import Trainings, check_roots
from regard.training.logs import read_log


@pytest.fixture(autouse=True)
def without_pause(monkeypatch):
    """Search for runs at every request."""
    monkeypatch.setattr(catalog, "SCAN_SECONDS", 0.0)


@contextmanager
def watching(*folders, **access):
    state = ServerState(runs=Runs(), trainings=Trainings(folders=folders), access=Access(**access))
    with TestClient(build_app(state)) as client:
        yield client


@pytest.fixture
def run(tiny_run, tmp_path):
    """A copy of a finished run in a folder of runs."""
    return shutil.copytree(tiny_run.folder, tmp_path / "runs" / "mine")


@pytest.fixture
def watched(run):
    with watching(run.parent) as client:
        yield client


def get(client, path="", **query):
    reply = client.get(f"/v1/trainings{path}", params=query)
    assert reply.status_code == 200, reply.text
    return reply.json()


def lines_of(path):
    return path.read_text(encoding="utf-8").splitlines(keepends=True)


def test_a_finished_run(watched, run):
    (found,) = get(watched)["trainings"]
    rows = read_log(run / TRAINING_LOG)
    valid = [row for row in rows if row["kind"] == "valid"]
    best = min(valid, key=lambda row: row["loss"])
    assert found["name"] == "mine"
    assert (found["task"], found["recipe"]) == ("generation", "bahdanau2015-laptop")
    assert (found["is_running"], found["stopped"]) == (False, "epochs")
    assert found["step"] == found["total_steps"] == rows[-1]["step"]
    assert (found["metric"], found["metric_label"]) == ("loss", "loss")
    assert found["best"] == {"step": best["step"], "value": best["loss"]}
    assert (found["seconds"], found["seconds_left"]) == (rows[-1]["seconds"], None)
    assert found["updated"] >= 0


def test_rows_and_samples_of_a_run(watched, run):
    found = get(watched, "/mine")
    assert found["rows"] == read_log(run / TRAINING_LOG)
    assert found["samples"] == read_json_lines(run / SAMPLES)
    assert (found["has_more"], found["is_restarted"]) == (False, False)
    query = {"after": found["next"], "samples_after": found["next_samples"]}
    later = get(watched, "/mine", version=found["version"], **query)
    assert (later["rows"], later["samples"]) == ([], [])
    with (run / TRAINING_LOG).open("a") as file:
        file.write('{"kind": "train", "step": 999, "seconds": 9.0, "loss": NaN}\n{"kind": "tr')
    later = get(watched, "/mine", version=found["version"], **query)
    assert later["rows"] == [{"kind": "train", "step": 999, "seconds": 9.0, "loss": None}]
    assert (later["step"], later["stopped"], later["is_restarted"]) == (999, None, False)
    with (run / TRAINING_LOG).open("a") as file:
        file.write('ain", "step": 1000, "seconds": 9.5}\n')
    assert get(watched, "/mine", after=later["next"])["rows"][0]["step"] == 1000


def test_pages(watched, run, monkeypatch):
    monkeypatch.setattr(training, "MAX_ROWS", 2)
    monkeypatch.setattr(training, "MAX_SAMPLES", 5)
    monkeypatch.setattr(growing_log, "MAX_READ", 2_000)
    rows, samples, query = [], [], {}
    for _ in range(100):
        found = get(watched, "/mine", **query)
        assert not found["is_restarted"]
        assert len(found["rows"]) <= 2 and len(found["samples"]) <= 5
        rows += found["rows"]
        samples += found["samples"]
        query = {"after": found["next"], "samples_after": found["next_samples"]}
        query["version"] = found["version"]
        if not found["has_more"]:
            break
    assert rows == read_log(run / TRAINING_LOG)
    assert samples == read_json_lines(run / SAMPLES)
    monkeypatch.setattr(training, "MAX_BYTES", 1)
    assert len(get(watched, "/mine")["rows"]) == 1  # however long it is


@pytest.mark.parametrize("is_longer", [False, True])
def test_a_resumed_training_restarts_the_rows(watched, run, is_longer):
    """Also if its log is longer again than before, when the client asks the next time."""
    found = get(watched, "/mine")
    lines = lines_of(run / TRAINING_LOG)
    kept = [line for line in lines if json.loads(line)["step"] <= 50]
    if is_longer:
        kept += ['{"kind": "train", "step": 51, "seconds": 1.0}\n'] * 1000
    (run / "new").write_text("".join(kept))
    (run / "new").replace(run / TRAINING_LOG)
    query = {"after": found["next"], "samples_after": found["next_samples"]}
    later = get(watched, "/mine", version=found["version"], **query)
    assert later["is_restarted"]
    assert later["rows"] == [json.loads(line) for line in kept]
    assert later["samples"] == found["samples"]
    assert later["step"] == json.loads(kept[-1])["step"]
    again = get(watched, "/mine", version=later["version"], after=later["next"])
    assert (again["rows"], again["is_restarted"]) == ([], False)
    # Without a version, only a shorter log is noticed.
    assert get(watched, "/mine", **query)["is_restarted"] == (not is_longer)


def test_a_log_that_is_overwritten_in_place(watched, run):
    first = get(watched, "/mine")
    size = (run / TRAINING_LOG).stat().st_size
    line = '{"kind": "train", "step": 1, "seconds": 1.0}\n'
    (run / TRAINING_LOG).write_text(line * (size // len(line) + 9))
    assert get(watched, "/mine", version=first["version"])["is_restarted"]


@pytest.mark.parametrize(
    "line",
    [
        b"{", b"[]", b'"text"', b"\xff\xfe", b'{"kind": "train"}', b"[" * 100_000,
        b'{"kind": 1, "step": 1, "seconds": 1}', b'{"kind": "train", "step": "1", "seconds": 1}',
        b'{"kind": "stop", "step": 1, "seconds": 1, "reason": 1}',
        b'{"kind": "train", "step": 1, "seconds": 1, "x": "\\ud800"}',
        b'{"kind": "train", "step": 1, "seconds": 1, "x": "' + b"x" * 2**21 + b'"}',
    ],
)  # fmt: skip
def test_lines_that_are_no_rows_are_skipped(watched, run, line):
    expected, samples = read_log(run / TRAINING_LOG), read_json_lines(run / SAMPLES)
    (run / TRAINING_LOG).write_bytes(line + b"\n" + (run / TRAINING_LOG).read_bytes())
    (run / SAMPLES).write_bytes(line + b"\n" + (run / SAMPLES).read_bytes())
    found = get(watched, "/mine")
    assert found["rows"] == expected
    assert found["samples"] == samples


def test_a_long_line_that_is_read_in_parts(watched, run, monkeypatch):
    monkeypatch.setattr(growing_log, "MAX_READ", 3_000)
    monkeypatch.setattr(growing_log, "MAX_LINE", 1_000)
    expected = read_log(run / TRAINING_LOG)
    (run / TRAINING_LOG).write_text("x" * 20_000 + "\n" + (run / TRAINING_LOG).read_text())
    for _ in range(20):
        found = get(watched, "/mine")
    assert found["rows"] == expected


@pytest.mark.parametrize("damage", ["missing", "folder", "outside", "pipe"])
def test_logs_that_are_no_files(watched, run, tmp_path, damage):
    found = get(watched, "/mine")
    for name in (TRAINING_LOG, SAMPLES):
        path = run / name
        path.unlink()
        if damage == "folder":
            path.mkdir()
        elif damage == "outside":
            (tmp_path / "secret").write_text('{"kind": "train", "step": 1, "seconds": 1}\n')
            path.symlink_to(tmp_path / "secret")
        elif damage == "pipe":
            os.mkfifo(path)
    later = get(watched, "/mine", version=found["version"])
    assert (later["rows"], later["samples"], later["is_restarted"]) == ([], [], True)
    assert (later["step"], later["best"], later["updated"]) == (0, None, None)


def test_a_run_of_an_older_version(watched, run):
    (run / SAMPLES).unlink()
    config = read_json(run / CONFIG)
    del config["about"]["batches_per_epoch"]
    (run / CONFIG).write_text(json.dumps(config))
    found = get(watched, "/mine")
    assert found["rows"] and found["samples"] == []
    assert found["total_steps"] is None


@pytest.mark.parametrize(
    "change",
    [
        {"recipe": {"task": [], "train": 3, "validation": {"metric": {}}}},
        {"recipe": {"train": {"max_steps": "x"}}},
        {"about": {"batches_per_epoch": "x"}},
        {"format": 99},
    ],
)
def test_settings_of_strangers(watched, run, change):
    (run / CONFIG).write_text(json.dumps(read_json(run / CONFIG) | change))
    found = get(watched, "/mine")
    assert found["rows"]
    assert found["total_steps"] is None or found["total_steps"] > 0


@pytest.mark.parametrize(
    ("train", "batches", "total"),
    [
        ({"max_steps": 10, "max_epochs": 0}, 4, 10),
        ({"max_steps": 10, "max_epochs": 2}, 4, 8),
        ({"max_steps": 0, "max_epochs": 3, "accumulate": 3}, 4, 6),
        ({"max_steps": 0, "max_epochs": 0}, 4, None),
        ({"max_steps": 10, "max_epochs": 2}, 0, 10),
        ({"max_steps": 0, "max_epochs": 2}, 0, None),
    ],
)
def test_total_steps(train, batches, total):
    assert training._find_total(train, batches) == total


def test_time_that_is_left(run, watched):
    lines = [{"kind": "train", "step": step, "seconds": step / 2} for step in (10, 20, 30)]
    (run / TRAINING_LOG).write_text("".join(json.dumps(line) + "\n" for line in lines))
    config = read_json(run / CONFIG)
    config["recipe"]["train"] |= {"max_steps": 100, "max_epochs": 0, "max_minutes": 10}
    (run / CONFIG).write_text(json.dumps(config))
    assert get(watched, "/mine")["seconds_left"] is None
    with FolderLock(run):
        found = get(watched, "/mine")
        assert (found["is_running"], found["stopped"]) == (True, None)
        assert found["seconds_left"] == 35
        assert (found["step"], found["total_steps"]) == (30, 100)
        config["recipe"]["train"]["max_minutes"] = 0.5
        (run / CONFIG).write_text(json.dumps(config))
        assert get(watched, "/mine")["seconds_left"] == 15


HOLD = """
import sys, time
from pathlib import Path
from regard.runs.lock import FolderLock
with FolderLock(Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(60)
"""


def test_lock_of_another_process(tmp_path):
    folder = tmp_path / "run"
    assert not is_locked(folder)
    command = [sys.executable, "-c", HOLD, folder]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "locked\n"
        before = (folder / LOCK).read_bytes()
        assert is_locked(folder)
        assert (folder / LOCK).read_bytes() == before
        process.kill()
        while (folder / "..").exists() and is_locked(folder):
            time.sleep(0.01)  # until the system has ended it; it is not waited for yet
        process.wait()
    assert (folder / LOCK).exists()
    assert not is_locked(folder)


def test_lock_of_another_machine_or_of_nobody(tmp_path):
    owner = {"pid": os.getpid(), "host": "elsewhere", "since": ""}
    (tmp_path / LOCK).write_text(json.dumps(owner))
    assert is_locked(tmp_path)
    with FolderLock(tmp_path):
        assert is_locked(tmp_path)
        # Of a process with the number of one that was killed long before it.
        os.utime(tmp_path / LOCK, (1, 1))
        assert not is_locked(tmp_path)
    for content in (
        "",
        "[]",
        "{}",
        '{"pid": "1", "host": ' + json.dumps(os.uname().nodename) + "}",
    ):
        (tmp_path / LOCK).write_text(content)
        assert not is_locked(tmp_path)


def test_runs_that_appear_later(tiny_run, tmp_path):
    with watching(tmp_path) as client:
        assert get(client) == {"trainings": []}
        shutil.copytree(tiny_run.folder, tmp_path / "a" / "b")
        (tmp_path / ".hidden").mkdir()
        shutil.copytree(tiny_run.folder, tmp_path / ".hidden" / "c")
        (tmp_path / "link").symlink_to(tmp_path / "a")
        shutil.copytree(tiny_run.folder, tmp_path / "1/2/3/4/5/6")
        assert [one["name"] for one in get(client)["trainings"]] == ["a/b"]
        assert get(client, "/a/b")["rows"]
        shutil.rmtree(tmp_path / "a")
        assert get(client) == {"trainings": []}
        assert client.get("/v1/trainings/a/b").status_code == 404


def test_names_of_several_folders(tiny_run, tmp_path):
    for name in ("x/runs/a", "y/runs/a", "z"):
        shutil.copytree(tiny_run.folder, tmp_path / name)
    x, y, z = tmp_path / "x/runs", tmp_path / "y/runs", tmp_path / "z"

    def names(*folders):
        with watching(*folders) as client:
            return [one["name"] for one in get(client)["trainings"]]

    assert names(z) == ["z"]
    assert names(x, z, x) == ["runs/a", "z"]
    assert names(x, y) == [f"{x}/a", f"{y}/a"]


def test_number_of_runs_and_folders_is_limited(tiny_run, tmp_path, monkeypatch):
    for name in "abc":
        shutil.copytree(tiny_run.folder, tmp_path / name)
    monkeypatch.setattr(catalog, "MAX_RUNS", 2)
    assert len(Trainings(folders=[tmp_path]).all()) == 2
    monkeypatch.setattr(catalog, "MAX_FOLDERS", 1)
    assert Trainings(folders=[tmp_path]).all() == []


def test_folders_that_do_not_exist(tmp_path):
    (tmp_path / "file").touch()
    check_roots([tmp_path])
    with pytest.raises(ConfigError, match=r"missing does not exist\. Give run folders"):
        check_roots([tmp_path, tmp_path / "missing"])
    with pytest.raises(ConfigError, match="file is not a folder"):
        check_roots([tmp_path / "file"])


@pytest.mark.parametrize(
    "path",
    ["/x", "/", "/../mine", "/%2e%2e/mine", "/mine/config.json", "/mine/", "/%00", "//etc/passwd"],
)  # fmt: skip
def test_paths_are_not_names(watched, path):
    reply = watched.get(f"/v1/trainings{path}")
    assert reply.status_code == 404
    assert "error" in reply.json()


@pytest.mark.parametrize(
    "query", ["after=-1", "after=x", "samples_after=1e9", "version=" + "v" * 200]
)
def test_queries_that_break_a_rule(watched, query):
    reply = watched.get(f"/v1/trainings/mine?{query}")
    assert reply.status_code == 422
    assert reply.json()["error"].startswith(f"`{query.partition('=')[0]}`: ")


def test_models_of_a_server_without_models(watched):
    assert watched.get("/v1/models").json() == {"object": "list", "data": []}
    assert watched.get("/readyz").json() == {"status": "ready"}
    assert watched.get("/languages").json() == []
    message = "This server has no models. `regard serve RUN` serves one."
    for path, body in {
        "/v1/predict": {"sources": "a"},
        "/v1/attention": {"source": "a", "model": "mine"},
        "/v1/embed": {"sources": ["a"]},
    }.items():
        reply = watched.post(path, json=body)
        assert (reply.status_code, reply.json()) == (404, {"error": message})
    reply = watched.post("/translate", json={"q": "a", "source": "en", "target": "de"})
    assert 400 <= reply.status_code < 500
    assert watched.post("/detect", json={"q": "a"}).status_code < 500


def test_trainings_need_the_token(run):
    with watching(run, token="t" * 32) as client:
        assert client.get("/v1/trainings").status_code == 401
        headers = {"Authorization": f"Bearer {'t' * 32}"}
        assert client.get("/v1/trainings/mine", headers=headers).status_code == 200


def test_a_server_of_models_offers_their_trainings(client, tiny_run):
    assert [one["name"] for one in get(client)["trainings"]] == ["en-de", "second"]
    assert get(client, "/en-de")["rows"] == read_log(tiny_run.folder / TRAINING_LOG)


def test_models_without_a_training_are_left_out(run, tmp_path):
    (run / TRAINING_LOG).unlink()
    assert Trainings({"mine": run, "missing": tmp_path / "missing"}).all() == []


def test_watch(run, starting):
    with starting(run.parent, command="watch") as server:
        assert f"Trainings of {run.parent} at http://127.0.0.1:" in server.log[-1]
        with urllib.request.urlopen(f"{server.url}/v1/trainings") as reply:
            assert [one["name"] for one in json.load(reply)["trainings"]] == ["mine"]
        assert server.stop() == 0
