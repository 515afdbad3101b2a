"""`regard plot`: training curves of runs."""

import re
import shutil

import pytest


@pytest.fixture
def run(tiny_run, tmp_path):
    shutil.copytree(tiny_run.folder, tmp_path / "mine")
    return tmp_path / "mine"


def svg_texts(path):
    return re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text(encoding="utf-8"))


def test_runs_are_plotted_in_one_figure(regard, run, tiny_run, tmp_path):
    out = tmp_path / "curves.svg"
    result = regard("plot", run, tiny_run.folder, "--out", out)
    assert (result.code, result.lines) == (0, [str(out)])
    texts = svg_texts(out)
    for text in ("Loss", "Learning rate", "mine", "reverse", "step"):
        assert text in texts


@pytest.mark.parametrize("name", ["curves.png", "curves.pdf", "curves.html"])
def test_format_is_that_of_the_suffix(regard, run, tmp_path, name):
    assert regard("plot", run, "-o", tmp_path / name, "--x", "seconds").code == 0
    assert (tmp_path / name).stat().st_size > 1000


def test_default_file_is_in_the_working_directory(regard, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert regard("plot", "mine").lines == ["curves.svg"]
    assert (tmp_path / "curves.svg").exists()


def test_runs_of_one_name_are_named_by_their_paths(regard, run, tmp_path, monkeypatch):
    shutil.copytree(run, tmp_path / "other" / "mine")
    monkeypatch.chdir(tmp_path)
    regard("plot", "mine", "other/mine", "mine/")
    texts = svg_texts(tmp_path / "curves.svg")
    assert [text for text in texts if "mine" in text] == ["mine", "other/mine"]


def test_unfinished_log_is_plotted_up_to_its_last_complete_row(regard, run, tmp_path):
    log = run / "journal.jsonl"
    log.write_bytes(log.read_bytes()[:-20])
    assert regard("plot", run, "--out", tmp_path / "a.svg").code == 0


def test_folder_that_is_no_run_is_refused(refused, tmp_path):
    message = refused("plot", tmp_path, "--out", tmp_path / "a.svg")
    assert "journal.jsonl" in message and "`regard train`" in message


def test_empty_log_is_refused(refused, run, tmp_path):
    (run / "journal.jsonl").write_text("")
    assert "train.log_every" in refused("plot", run, "--out", tmp_path / "a.svg")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("--out", "a.jpg"), ("`--out`", ".svg", "a.jpg")),
        (("--x", "steps"), ("`--x`", "'step'", "'seconds'")),
    ],
)
def test_wrong_option_is_refused(refused, run, arguments, parts):
    message = refused("plot", run, *arguments)
    assert [part for part in parts if part not in message] == []
