import json

import pytest

FAST = (
    "train.max_steps=2",
    "train.validate_every=1",
    "train.schedule.warmup_steps=0",
    "validation.metric=loss",
)
MODELS = ("--only", "cho2014, bahdanau2015", "--device", "cpu")


@pytest.fixture
def command(reverse_files, tmp_path):
    held_out = ("--valid", reverse_files.valid, "--test", reverse_files.test)
    return ("ladder", reverse_files.train, *held_out, "--out", tmp_path, *MODELS, *FAST)


def test_ladder_writes_a_comparison_and_a_second_call_trains_nothing(regard, command, tmp_path):
    result = regard(*command)
    assert result.code == 0, result.err
    assert "Model 2 of 2: bahdanau2015." in result.err
    assert result.lines[-2:] == [str(tmp_path / f"comparison.{end}") for end in ("json", "html")]
    values = json.loads((tmp_path / "comparison.json").read_text(encoding="utf-8"))
    assert [run["name"] for run in values["runs"]] == ["cho2014", "bahdanau2015"]
    again = regard(*command)
    assert again.code == 0
    assert "Model 1 of" not in again.err


def test_interrupted_ladder_prints_how_to_resume(regard, command, monkeypatch, interrupted_at):
    monkeypatch.setattr("regard.runs.train.choose_display", lambda: interrupted_at(1))
    result = regard(*command)
    assert result.code == 130
    assert result.err.endswith("Run the same command to resume.\n")


def test_unknown_model_is_refused(refused, tmp_path):
    message = refused("ladder", "copy", "--out", tmp_path, "--only", "cho2015,luong2015")
    assert message.startswith("`only` must be one of 'sutskever2014', ")
