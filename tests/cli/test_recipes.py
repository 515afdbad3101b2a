import json

import pytest


def test_recipes_are_listed_with_data_size_score_and_time(regard):
    result = regard("recipes", "--task", "generation")
    (line,) = (line for line in result.lines if line.split()[:1] == ["cho2014"])
    assert line.split() == "cho2014 27.2 BLEU, 2 min, H200".split()
    about = result.lines[result.lines.index(line) + 1]
    assert about.startswith("      multi30k; 6.1 M parameters; GRU encoder")


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_list_of_recipes_fits_the_terminal(regard, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert max(map(len, regard("recipes").lines)) <= columns


def test_recipes_as_json(regard):
    listed = json.loads(regard("recipes", "--json").out)["recipes"]
    assert {"name", "task", "model", "data", "parameters", "score", "time"} == {*listed[0]}


def test_explain_without_a_recipe_is_an_error_that_names_the_list(refused):
    for arguments in ((), ("model.encoder.kind=rnn",)):
        assert "`regard recipes`" in refused("explain", *arguments)


def test_unknown_recipe_is_answered_with_the_nearest_names(refused):
    message = refused("explain", "bahdanau2014")
    assert "'bahdanau2015'" in message
    assert message.count("'") == 8


def test_explained_run_has_its_settings(regard, tiny_run):
    explained = regard("explain", tiny_run.folder, "train.max_epochs=7").lines
    assert explained[0].startswith(f"# Settings of the run {tiny_run.folder}")
    assert "max_epochs = 7" in explained


def test_new_kind_is_reported(regard):
    result = regard("explain", "vaswani2017-tiny", "model.encoder.kind=rnn")
    assert result.err.startswith("model.encoder.kind=rnn: kept dim=128")
    assert 'kind = "rnn"' in result.lines
