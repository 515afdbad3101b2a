"""A language model as a person uses it, on a tiny text."""

import json

import pytest

from regard.runs.request import Request
from regard.runs.train import train

TEXT = "".join(f"a cat sat on mat {number % 7}\n\nthe dog ran\n" for number in range(60))
WORDS = (
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
        Request(data=(str(text),), recipe="gpt-laptop", settings=WORDS, out=out, device="cpu")
    ).folder


def test_training_prints_every_way_to_share_the_surprise(regard, text, tmp_path):
    words = (*WORDS, "train.max_steps=2", "train.validate_every=1")
    answer = regard("train", text, "--recipe", "gpt-laptop", "--out", tmp_path / "run", *words)
    assert answer.code == 0, answer.err
    names = ("perplexity", "word perplexity", "bits per character", "nats per character")
    assert [line.startswith(name) for name, line in zip(names, answer.lines, strict=False)] == [
        True
    ] * 4


def test_continuations_begin_with_the_prompts_and_can_be_drawn_again(regard, run):
    words = ("predict", run, "--json", "search.temperature=0.7", "--device", "cpu")
    answer, again = (regard(*words, stdin="the\n\na cat\n") for _ in range(2))
    rows = [json.loads(line) for line in answer.lines]
    assert [row["source"] for row in rows] == ["the", "", "a cat"]
    assert all(row["predictions"][0]["text"].startswith(row["source"]) for row in rows)
    assert answer.out == again.out


def test_evaluation_of_a_file_is_told_with_its_context(regard, run, text):
    answer = regard("evaluate", run, text, "--json", "--device", "cpu")
    scores = json.loads(answer.out)["scores"]
    assert scores["perplexity"]["signature"] == f"unit:token|units:{len(TEXT)}|context:24|stride:12"
    assert scores["perplexity"]["value"] < 25


def test_every_line_is_scored(regard, run, tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("the dog ran\n\nzzz qqq xxx\n", encoding="utf-8")
    answer = regard("score", run, path, "--device", "cpu")
    usual, _, odd = map(float, answer.lines)
    assert odd < usual < 0


def test_show_names_the_likeliest_next_tokens_beside_the_map(regard, run):
    answer = regard("show", run, "the do", "--device", "cpu")
    assert answer.lines[0].startswith("Next: ")
    assert "▁" in answer.out


def test_interrupted_training_goes_on_as_if_nothing_happened(regard, run, text, tmp_path):
    short = regard(
        "train", text, "--recipe", "gpt-laptop", "--out", tmp_path, "--device", "cpu",
        *WORDS, "train.max_minutes=0.0001",
    )  # fmt: skip
    assert short.code == 0, short.err
    words = ("--resume", "--device", "cpu", "train.max_minutes=0")
    answer = regard("train", text, "--out", tmp_path, *words)
    assert answer.code == 0, answer.err
    ours, theirs = (
        json.loads((folder / "metrics.json").read_text(encoding="utf-8"))["test"]["scores"]
        for folder in (tmp_path, run)
    )
    assert ours == theirs


@pytest.mark.parametrize(
    ("raw", "message"),
    [(b"", "is empty: there is no text in it."), (b"\xff\xfe", "is not UTF-8")],
)
def test_what_is_not_text_is_refused(refused, tmp_path, raw, message):
    path = tmp_path / "text.txt"
    path.write_bytes(raw)
    assert message in refused("train", path, "--recipe", "gpt-laptop", "--out", tmp_path / "run")


def test_short_text_is_refused(refused, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("a\n" * 30, encoding="utf-8")
    message = refused("train", path, "--recipe", "gpt-laptop", "--out", tmp_path / "run")
    assert message.startswith("A text must be longer than a window of 64 tokens")
