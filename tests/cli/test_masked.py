"""Masked language models as a person uses them: train, predict, evaluate, score, show."""

import json

import pytest

WORDS = (
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
    answer = regard("train", text, "--recipe", "liu2019-laptop", "--out", out, *WORDS)
    assert answer.code == 0, answer
    assert answer.lines[0].startswith("masked accuracy ")
    return out


def test_every_verb_works_on_a_masked_model(regard, run, text):
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


def test_a_student_and_a_continued_run_begin_with_another(regard, run, text, tmp_path):
    for name, word in (("student", "teacher"), ("domain", "init_from")):
        out = tmp_path / name
        answer = regard(
            "train", text, "--recipe", "liu2019-laptop", "--out", out, *WORDS, f"{word}={run}"
        )
        assert answer.code == 0, answer


def test_faults_are_told_in_one_line(refused, run, tmp_path):
    assert "must have a gap to fill" in refused("predict", run, "-", stdin="the cat\n")
    assert "`max_length` must be at least" in refused(
        "predict", run, "-", stdin="the cat ran " * 10 + "<mask>\n"
    )
    assert "`--beam` is for models that search" in refused(
        "predict", run, "-", "--beam", "2", stdin="the <mask>\n"
    )


def test_a_missing_teacher_is_told_in_one_line(refused, text, tmp_path):
    words = ("--recipe", "liu2019-laptop", "--out", tmp_path / "student", *WORDS)
    message = refused("train", text, *words, f"teacher={tmp_path / 'none'}")
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
def test_every_recipe_explains_itself(regard, recipe):
    answer = regard("explain", recipe)
    assert answer.code == 0
    assert "[data.batch]" in answer.out
