"""Commands on masked language models: train, predict, evaluate, score, show."""

import json

import pytest

SETTINGS = (
    "data.tokenizer.vocab_size=60",
    "data.batch.max_length=24",
    "data.batch.max_tokens=240",
    "model.encoder.dim=8",
    "model.encoder.num_heads=2",
    "model.encoder.num_layers=1",
    "model.encoder.feed_forward_dim=8",
    "model.encoder.max_length=24",
    "model.encoder.positions=learned",
    "train.max_steps=4",
)


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    nouns = ("cat", "dog", "hen", "fox")
    lines = [f"the {one} and the {two} ran away.\n" for one in nouns for two in nouns]
    path.write_text("".join(lines * 4), encoding="utf-8")
    return path


@pytest.fixture
def run(regard, text, tmp_path):
    out = tmp_path / "masked"
    result = regard("train", text, "--recipe", "liu2019-laptop", "--out", out, *SETTINGS)
    assert result.code == 0, result
    assert result.lines[0].startswith("masked accuracy ")
    return out


def test_every_command_works_on_a_masked_model(regard, run, text):
    filled = regard("predict", run, "-", stdin="the <mask> and the ___ ran away.\n\n")
    assert filled.lines[0].startswith("the ")
    assert "<mask>" not in filled.out
    assert filled.lines[1] == ""

    best = regard("predict", run, "-", "--nbest", "3", stdin="the ___ ran\n").lines
    assert [line.split("\t")[0] for line in best] == ["1", "1", "1"]

    measured = json.loads(regard("evaluate", run, text, "--json").out)
    assert set(measured["scores"]) == {"accuracy", "perplexity"}

    scored = regard("score", run, text).lines
    assert len(scored) == 64
    assert all(float(value) < 0 for value in scored)

    shown = regard("show", run, "the cat ran away.")
    assert shown.lines[0] == "the cat ran away."
    assert "<sos>" in shown.out


def test_training_with_teacher_and_init_from(regard, run, text, tmp_path):
    for name, setting in (("student", "teacher"), ("domain", "init_from")):
        out = tmp_path / name
        result = regard(
            "train", text, "--recipe", "liu2019-laptop", "--out", out, *SETTINGS, f"{setting}={run}"
        )
        assert result.code == 0, result


def test_invalid_input_is_one_line_of_error(refused, run, tmp_path):
    assert "must have a mask" in refused("predict", run, "-", stdin="the cat\n")
    assert "`max_length` must be at least" in refused(
        "predict", run, "-", stdin="the cat ran " * 10 + "<mask>\n"
    )
    assert "`--beam` is for models that search" in refused(
        "predict", run, "-", "--beam", "2", stdin="the <mask>\n"
    )


def test_missing_teacher_is_one_line_of_error(refused, text, tmp_path):
    arguments = ("--recipe", "liu2019-laptop", "--out", tmp_path / "student", *SETTINGS)
    message = refused("train", text, *arguments, f"teacher={tmp_path / 'none'}")
    assert "none" in message


@pytest.mark.parametrize(
    "recipe",
    [
        "devlin2019-small",
        "liu2019-small",
        "lan2020-small",
        "joshi2020-small",
        "sanh2019-small",
        "raffel2020-small",
        "liu2019-laptop",
    ],
)
def test_every_recipe_can_be_explained(regard, recipe):
    result = regard("explain", recipe)
    assert result.code == 0
    assert "[data.batch]" in result.out
