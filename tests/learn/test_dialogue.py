"""A small dialogue model predicts replies better than a unigram model."""

import math
from collections import Counter
from importlib.util import find_spec

import pytest

from regard.core.files import read_json_lines
from regard.data.datasets.catalog import find_data
from regard.data.text.readers import write_examples
from regard.runs import folder as runs
from regard.runs.request import Request
from regard.runs.train import train

pytestmark = [
    pytest.mark.learn,
    pytest.mark.skipif(
        find_spec("chitchat_dataset") is None, reason="the package chitchat-dataset is missing"
    ),
]

STEPS = (
    "data.source.vocab_size=1000",
    "data.batch.max_tokens=1200",
    "data.batch.max_length=60",
    "train.max_steps=320",
    "train.validate_every=80",
    "train.schedule.warmup_steps=40",
    "train.precision=fp32",
    "search.beams=1",
    "search.max_extra=20",
)
MAX_CHARACTERS = 150


def write_slice(folder):
    """Write short exchanges: 8,000 for training, 200 for validation, 50 for the test."""
    splits = find_data("chitchat:1")
    for side, num in (("train", 8_000), ("valid", 200), ("test", 50)):
        short = [
            example
            for example in getattr(splits, side)
            if max(len(example.source), len(example.target)) <= MAX_CHARACTERS
        ]
        write_examples(folder / f"{side}.jsonl", short[:num])
    return [(str(folder / f"{side}.jsonl"),) for side in ("train", "valid", "test")]


def unigram_loss(task, train_side, valid_side):
    """Return the loss of a unigram model with add-one smoothing, in nats per token."""
    counts, valid_counts = (
        Counter(
            token
            for ids in task.target.read_all([example.target for example in side])
            for token in ids[1:]
        )
        for side in (train_side, valid_side)
    )
    total = counts.total() + task.target.tokenizer.vocab_size
    loss = sum(num * -math.log((counts[token] + 1) / total) for token, num in valid_counts.items())
    return loss / valid_counts.total()


def test_loss_of_replies_is_below_that_of_a_unigram_model(tmp_path):
    data, valid, test = write_slice(tmp_path)
    trained = train(
        Request(
            data=data,
            valid=valid,
            test=test,
            recipe="vinyals2015-laptop",
            settings=STEPS,
            out=tmp_path / "run",
            device="cpu",
        )
    )
    task = trained.predictor
    sides = [task.read_split(path, "valid", config=task.recipe.data) for path in (data, valid)]
    rows = read_json_lines(tmp_path / "run" / runs.TRAINING_LOG)
    best = min(row["loss"] for row in rows if row["kind"] == "valid")
    unigram = unigram_loss(task, *sides)
    print(f"loss {best:.2f}, of the unigram model {unigram:.2f}")
    assert best < unigram - 0.6
