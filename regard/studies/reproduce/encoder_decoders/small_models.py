"""Small recurrent models that spell numbers, trained on the same data for the same time.

A source is a number, digit by digit (`4 0 7`); its target is the number in words (`four hundred and
seven`). The source length is the number of digits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.data.datasets.synthetic.toys import numbers
from regard.data.example import Example
from regard.data.splits import drop_overlap
from regard.data.text.readers import write_examples
from regard.metrics.text.error_rates import accuracy
from regard.runs.request import Request
from regard.studies.reproduce.running import train_run

RECIPE = "cho2014-laptop"
"""Recipe that the settings of all models override."""

TRAINING = (
    "data.batch.max_tokens=1000",
    "data.batch.max_length=60",
    "model.init.scale=1.0",
    "train.max_epochs=0",
    "train.max_steps=600",
    "train.validate_every=600",
    "train.optimizer.learning_rate=0.006",
    "train.schedule.warmup_steps=50",
    "validation.metric=loss",
    "search.beams=1",
)
"""Overrides of all models: batches, initialisation, number of updates, learning rate and search."""

EMBEDDING_DIM = 64
NUM_VALID = 100
"""Number of validation examples."""

DATA_SEED = 1
"""Seed of the examples, which are the same for all seeds of the models."""


@dataclass(frozen=True)
class NumberData:
    """Training examples, and test examples by length; no source occurs twice."""

    train: list[Example]
    tests: Mapping[int, list[Example]]


def sample_numbers(num_train: int, *, max_digits: int, num_tests: int) -> NumberData:
    """Sample numbers of 2 to `max_digits` digits, `num_tests` test examples per length."""
    lengths = range(2, max_digits + 1)
    tests = {
        length: numbers(num_tests, seed=DATA_SEED + length, limits=(length, length))
        for length in lengths
    }
    held_out = [example for examples in tests.values() for example in examples]
    sampled = numbers(num_train + len(held_out), seed=DATA_SEED, limits=(2, max_digits))
    return NumberData(drop_overlap(sampled, held_out)[0][:num_train], tests)


def rnn(dim: int) -> tuple[str, ...]:
    """Return overrides for encoder and decoder of one layer of GRU cells, `dim` wide."""
    sizes = {"embedding_dim": EMBEDDING_DIM, "dim": dim, "dropout": 0.0}
    return tuple(
        f"model.{part}.{name}={value}"
        for part in ("encoder", "decoder")
        for name, value in sizes.items()
    )


def train_models(
    models: Mapping[str, Sequence[str]],
    data: NumberData,
    *,
    seed: int,
    folder: Path,
) -> dict[str, Any]:
    """Train one model per name and return the tasks.

    Args:
        models: Overrides by name of the model; they come after `TRAINING`.
        data: Training examples; the first ones are the validation examples.
        seed: Seed of the models.
        folder: Folder of data and runs.
    """
    held_out = [example for examples in data.tests.values() for example in examples]
    sides = {
        "train": data.train[NUM_VALID:],
        "valid": data.train[:NUM_VALID],
        "test": held_out[:: len(data.tests)],
    }
    files = {side: folder / "data" / f"{side}.jsonl" for side in sides}
    for side, examples in sides.items():
        write_examples(files[side], examples)
    return {
        name: train_run(
            Request(
                data=(str(files["train"]),),
                valid=(str(files["valid"]),),
                test=(str(files["test"]),),
                recipe=RECIPE,
                settings=(*TRAINING, *overrides),
                out=folder / "runs" / f"model-{number}",
            ),
            seed,
        )
        for number, (name, overrides) in enumerate(models.items(), start=1)
    }


def measure_by_length(task: Any, tests: Mapping[int, Sequence[Example]]) -> dict[int, float]:
    """Return the percentage of exactly correct predictions by source length."""
    found = {}
    for length, examples in tests.items():
        predicted = task.best_texts([example.source for example in examples])
        found[length] = accuracy(predicted, [[example.target] for example in examples]).value
    return found
