"""Commands on a language model of a tiny text."""

import json

import pytest

from regard.runs.request import Request
from regard.runs.train import train

TEXT = "".join(f"a cat sat on mat {number % 7}\n\nthe dog ran\n" for number in range(60))
SETTINGS = (
    "data.window=24",
    "data.num_windows=4",
    "model.dim=16",
    "model.num_layers=1",
    "model.num_heads=2",
    "model.feed_forward_dim=16",
    "train.max_steps=30",
    "train.optimizer.learning_rate=0.02",
    "train.validate_every=15",
    "train.schedule.warmup_steps=0",
    "train.precision=fp32",
    "search.max_extra=20",
)


@pytest.fixture(scope="session")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def run(text, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "language"
    return train(
        Request(data=(str(text),), recipe="gpt-laptop", settings=SETTINGS, out=out, device="cpu")
    ).folder


def test_training_prints_perplexities_and_bits_per_character(regard, text, tmp_path):
    arguments = (*SETTINGS, "train.max_steps=2", "train.validate_every=1")
    result = regard("train", text, "--recipe", "gpt-laptop", "--out", tmp_path / "run", *arguments)
    assert result.code == 0, result.err
    names = ("perplexity", "word perplexity", "bits per character", "nats per character")
    assert [line.startswith(name) for name, line in zip(names, result.lines, strict=False)] == [
        True
    ] * 4


def test_continuations_start_with_the_prompt_and_are_reproducible(regard, run):
    arguments = ("predict", run, "--json", "search.temperature=0.7", "--device", "cpu")
    result, again = (regard(*arguments, stdin="the\n\na cat\n") for _ in range(2))
    rows = [json.loads(line) for line in result.lines]
    assert [row["source"] for row in rows] == ["the", "", "a cat"]
    assert all(row["predictions"][0]["text"].startswith(row["source"]) for row in rows)
    assert result.out == again.out


def test_evaluation_names_context_and_stride(regard, run, text):
    result = regard("evaluate", run, text, "--json", "--device", "cpu")
    scores = json.loads(result.out)["scores"]
    assert scores["perplexity"]["signature"] == f"unit:token|units:{len(TEXT)}|context:24|stride:12"
    assert scores["perplexity"]["value"] < 25


def test_every_line_is_scored(regard, run, tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("the dog ran\n\nzzz qqq xxx\n", encoding="utf-8")
    result = regard("score", run, path, "--device", "cpu")
    common, _, rare = map(float, result.lines)
    assert rare < common < 0


def test_show_prints_the_most_likely_next_tokens(regard, run):
    result = regard("show", run, "the do", "--device", "cpu")
    assert result.lines[0].startswith("Next: ")
    assert "▁" in result.out


def test_resumed_training_equals_uninterrupted_training(regard, run, text, tmp_path):
    short = regard(
        "train", text, "--recipe", "gpt-laptop", "--out", tmp_path, "--device", "cpu",
        *SETTINGS, "train.max_minutes=0.0001",
    )  # fmt: skip
    assert short.code == 0, short.err
    arguments = ("--resume", "--device", "cpu", "train.max_minutes=0")
    result = regard("train", text, "--out", tmp_path, *arguments)
    assert result.code == 0, result.err
    ours, theirs = (
        json.loads((folder / "metrics.json").read_text(encoding="utf-8"))["test"]["scores"]
        for folder in (tmp_path, run)
    )
    assert ours == theirs


@pytest.mark.parametrize(
    ("raw", "message"),
    [(b"", "is empty: it contains no text."), (b"\xff\xfe", "is not UTF-8")],
)
def test_invalid_text_is_refused(refused, tmp_path, raw, message):
    path = tmp_path / "text.txt"
    path.write_bytes(raw)
    assert message in refused("train", path, "--recipe", "gpt-laptop", "--out", tmp_path / "run")


def test_short_text_is_refused(refused, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("a\n" * 30, encoding="utf-8")
    message = refused("train", path, "--recipe", "gpt-laptop", "--out", tmp_path / "run")
    assert message.startswith("A text must be longer than a window of 64 tokens")
