"""Small recurrent models that copy sequences of digits, trained on the same data for the same time.

Every digit counts and none can be inferred from the others, so that the score shows how much of the
source the decoder gets.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from regard.data.datasets.synthetic.toys import sort
from regard.data.example import Example
from regard.data.splits import drop_overlap
from regard.data.text.readers import write_examples
from regard.metrics.text.bleu import bleu
from regard.metrics.text.error_rates import accuracy
from regard.runs.request import Request
from regard.studies.reproduce.running import train_run

RECIPE = "cho2014-laptop"
"""Recipe that the settings of all models override."""

TRAINING = (
    "data.batch.max_tokens=300",
    "data.batch.max_length=20",
    "model.init.scale=1.0",
    "train.max_epochs=0",
    "train.max_steps=1500",
    "train.validate_every=1500",
    "train.optimizer.learning_rate=0.01",
    "train.schedule.warmup_steps=50",
    "validation.metric=loss",
    "search.beams=1",
)
"""Overrides of all models: batches, initialisation, number of updates, learning rate and search."""

MIN_LENGTH = 4
"""BLEU counts n-grams of up to four words."""

EMBEDDING_DIM = 64
NUM_VALID = 100
"""Number of validation examples."""

DATA_SEED = 1
"""Seed of the examples, which are the same for all seeds of the models."""


@dataclass(frozen=True)
class CopyData:
    """Training examples, and test examples by length; no source occurs twice."""

    train: list[Example]
    tests: Mapping[int, list[Example]]


def sample_digits(num_train: int, *, max_length: int, num_tests: int) -> CopyData:
    """Sample sequences of digits of `MIN_LENGTH` to `max_length`, `num_tests` tests per length."""
    tests = {
        length: _copies(num_tests, seed=DATA_SEED + length, limits=(length, length))
        for length in range(MIN_LENGTH, max_length + 1)
    }
    held_out = [example for examples in tests.values() for example in examples]
    sampled = _copies(num_train + len(held_out), seed=DATA_SEED, limits=(MIN_LENGTH, max_length))
    return CopyData([*drop_overlap(sampled, held_out)[0][:num_train]], tests)


def _copies(num: int, *, seed: int, limits: tuple[int, int]) -> list[Example]:
    """Return the sources of the data set `sort`, with themselves as targets."""
    return [Example(one.source, one.source) for one in sort(num, seed=seed, limits=limits)]


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
    data: CopyData,
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


@dataclass(frozen=True)
class Scores:
    """Metrics of one model by source length."""

    bleu: Mapping[int, float]
    exact: Mapping[int, float]
    """Percentage of predictions without an error."""

    def mean_bleu(self, lengths: Iterable[int]) -> float:
        """Return the mean BLEU of several lengths."""
        return mean(self.bleu[length] for length in lengths)


def measure_by_length(task: Any, tests: Mapping[int, Sequence[Example]]) -> Scores:
    """Score the predictions of a task for test examples of each length."""
    scores: dict[int, float] = {}
    exact: dict[int, float] = {}
    for length, examples in tests.items():
        predicted = task.best_texts([example.source for example in examples])
        targets = [[example.target] for example in examples]
        scores[length] = bleu(predicted, targets).value
        exact[length] = accuracy(predicted, targets).value
    return Scores(scores, exact)


def tables_by_length(results: Mapping[str, Scores]) -> dict[str, dict[str, dict[str, float]]]:
    """Return tables of BLEU and of exact predictions by length, by heading."""
    return {
        "BLEU by source length": {
            name: {str(length): value for length, value in scores.bleu.items()}
            for name, scores in results.items()
        },
        "Exact predictions in % by source length": {
            name: {str(length): value for length, value in scores.exact.items()}
            for name, scores in results.items()
        },
    }
