"""A small model learns to find a marked number in sources of 1,200 tokens."""

import random

import pytest

from regard.data.example import Example
from regard.data.text.readers import write_examples
from regard.runs.request import Request
from regard.runs.train import train

pytestmark = pytest.mark.learn
LONGEST = 1_200
SIDE = {
    "dim": 32,
    "num_layers": 1,
    "num_heads": 2,
    "feed_forward_dim": 64,
    "positions": "rotary",
    "dropout": 0.0,
}
OVERRIDES = (
    "seed=1",
    "data.source.kind=word",
    f"data.batch.max_tokens={4 * LONGEST}",
    f"data.batch.max_length={LONGEST}",
    # Short sources make the attention learn, so there must be batches of them, too.
    "data.batch.max_sentences=16",
    *(
        f"model.{side}.{name}={value}"
        for side in ("encoder", "decoder")
        for name, value in SIDE.items()
    ),
    "model.encoder.window=2",
    "model.encoder.pooling=4",
    "train.max_steps=1000",
    "train.validate_every=250",
    "train.precision=fp32",
    "train.average_last=0",
    "train.label_smoothing=0.0",
    "train.optimizer.learning_rate=0.004",
    "train.schedule.warmup_steps=50",
    "validation.metric=loss",
    "search.beams=1",
    "search.max_ratio=0.0",
    "search.max_extra=4",
)


def find_marked(num, lengths, *, seed):
    """Yield sequences of digits; the target follows a mark. Lengths are log-uniform."""
    generator = random.Random(seed)
    digits = [str(digit) for digit in range(10)]
    for _ in range(num):
        low, high = lengths
        length = round(low * (high / low) ** generator.random())
        source = generator.choices(digits, k=length)
        position = generator.randrange(length - 1)
        source[position] = "mark"
        yield Example(" ".join(source), source[position + 1])


@pytest.fixture(scope="module")
def finder(tmp_path_factory):
    """Train a model on sources of all lengths; the test set has the longest only."""
    folder = tmp_path_factory.mktemp("long")
    longest = LONGEST - 1  # without the end token
    sides = {"train": (3_000, 6), "valid": (40, longest), "test": (100, longest)}
    for number, (side, (num, shortest)) in enumerate(sides.items()):
        examples = find_marked(num, (shortest, longest), seed=number)
        write_examples(folder / f"{side}.jsonl", list(examples))
    data, valid, test = ((str(folder / f"{side}.jsonl"),) for side in sides)
    return train(
        Request(
            data=data,
            valid=valid,
            test=test,
            recipe="vaswani2017-tiny",
            settings=OVERRIDES,
            out=folder / "run",
            device="cpu",
        )
    )


def test_marked_number_is_found_with_windowed_attention_and_a_pooled_memory(finder, value):
    assert value(finder, "accuracy") >= 90
