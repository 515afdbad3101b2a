import json

import pytest

from regard.data.example import Example
from regard.data.text.readers import write_examples
from tests.fixtures.runs import copy_without_checksums


@pytest.fixture
def two_runs(tiny_run, tiny_run_without_attention):
    return tiny_run_without_attention.folder, tiny_run.folder


def test_runs_are_compared_in_the_terminal(regard, two_runs):
    result = regard("compare", *two_runs)
    assert result.code == 0
    for title in (
        "Quality",
        "Cost",
        "BLEU by source length",
        "Largest differences between outputs",
    ):
        assert title in result.lines
    assert any(line.startswith("BLEU: nrefs:1|bs:1000|seed:12345|") for line in result.lines)


def test_settings_that_differ_are_listed(regard, two_runs):
    lines = regard("compare", *two_runs).lines
    rows = [line.split() for line in lines[lines.index("Settings") :]]
    assert ["model.decoder.kind", "cho", "bahdanau"] in rows
    assert not any(row[:1] == ["seed"] for row in rows)


def test_search_settings_are_refused(refused, two_runs):
    message = refused("compare", *two_runs, "search.beams=1")
    assert "saved predictions" in message
    assert "'search.beams=1'" in message


def test_json_is_printed_to_standard_output(regard, two_runs):
    values = json.loads(regard("compare", *two_runs, "--json").out)
    first, second = values["runs"]
    assert first["differences"] == {}
    assert second["differences"]["bleu"]["p_value"] < 0.05


def test_json_and_page_are_written_to_files(regard, two_runs, tmp_path):
    json_file, page = tmp_path / "new" / "numbers.json", tmp_path / "page.html"
    result = regard("compare", *two_runs, "-o", json_file, "--out", page)
    assert result.lines[-2:] == [str(json_file), str(page)]
    assert json.loads(json_file.read_text(encoding="utf-8"))["num_examples"] == 30
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_page_can_still_be_named_by_its_own_option(regard, two_runs, tmp_path):
    page = tmp_path / "page.html"
    assert regard("compare", *two_runs, "--html", page).lines[-1] == str(page)


def test_unknown_kind_of_file_is_refused(refused, two_runs):
    assert "`--out` must end in .html or .json" in refused("compare", *two_runs, "-o", "a.csv")


def test_single_run_is_refused(refused, tiny_run):
    message = refused("compare", tiny_run.folder)
    assert message.startswith("A comparison needs at least two run folders, but has 1.")


def test_run_on_another_test_set_is_refused(refused, tiny_run, tmp_path):
    other = copy_without_checksums(tiny_run.folder, tmp_path / "other")
    write_examples(other / "test.jsonl", [Example("a b", "b a")] * 30)
    message = refused("compare", tiny_run.folder, other)
    assert f"{tiny_run.folder} and {other} were tested on different sentences" in message
    assert "sentence 1" in message
