"""Short trainings of small models, for the experiments on transformers."""

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from regard.data.batch import Batch
from regard.data.example import Example
from regard.runs.recipes import load_recipe
from regard.tasks.generation.recipe import Recipe
from regard.tasks.generation.task import Predictor
from regard.training.optimizers import build_optimizer, set_training
from regard.training.schedules import build_schedule

SMALL_TRANSFORMER = str(Path(__file__).with_name("small-transformer.toml"))
"""Recipe of the Transformer of these experiments."""


@dataclass
class Training:
    """A trained model and the course of its training."""

    task: Predictor
    losses: list[tuple[float, float]] = field(default_factory=list)
    """Step, and mean loss per target token since the row before."""
    seconds: float = 0.0
    """CPU time of the updates."""
    num_tokens: int = 0
    """Target tokens of the updates."""

    @property
    def final_loss(self) -> float:
        """Loss of the last steps."""
        return self.losses[-1][1]


def read_recipe(name: str, settings: Sequence[str], *, seed: int) -> Recipe:
    """Return a recipe by name or file with overrides and a seed."""
    recipe: Recipe = load_recipe(name, (*settings, f"seed={seed}"))
    return recipe


def train_small(
    recipe: Recipe,
    examples: Sequence[Example],
    *,
    observe: Callable[[Training], None] | None = None,
) -> Training:
    """Train for `train.max_steps` updates and return the model with its last weights.

    The updates are those of `regard train`; there is no validation and no run folder. Training
    ends if the loss is not finite.

    Args:
        recipe: Settings of data, model and training.
        examples: Training pairs.
        observe: Called with the training after every `train.log_every` updates.
    """
    with torch.random.fork_rng(devices=[]):
        task = Predictor.prepare(recipe, examples, device=torch.device("cpu"))
        training = Training(task)
        _update(training, _endless_batches(task, examples), observe)
    task.model.eval()
    return training


def _endless_batches(task: Predictor, examples: Sequence[Example]) -> Iterator[Batch]:
    batches = task.training_batches(examples)
    for number in itertools.count():
        yield from batches.epoch(number)


def _update(
    training: Training, batches: Iterator[Batch], observe: Callable[[Training], None] | None
) -> None:
    task, config = training.task, training.task.recipe.train
    optimizer = build_optimizer(config.optimizer, task.model)
    schedule = build_schedule(config.schedule, config.max_steps)
    total, num_tokens = 0.0, 0
    set_training(task.model)
    for step in range(1, config.max_steps + 1):
        started = time.process_time()
        batch = next(batches)
        loss = task.loss(batch)
        optimizer.zero_grad()
        (loss.total / loss.count).backward()  # type: ignore[no-untyped-call]
        if config.clip_norm:
            torch.nn.utils.clip_grad_norm_(task.model.parameters(), config.clip_norm)
        for group in optimizer.param_groups:
            group["lr"] = config.optimizer.learning_rate * schedule.factor(step, 0)
        optimizer.step()
        total, num_tokens = total + float(loss.nll), num_tokens + int(loss.count)
        training.seconds += time.process_time() - started
        training.num_tokens += int(loss.count)
        if step % config.log_every == 0:
            training.losses.append((step, total / num_tokens))
            total, num_tokens = 0.0, 0
            if observe is not None:
                observe(training)
            if not math.isfinite(training.final_loss):
                break


def accuracy(task: Predictor, examples: Sequence[Example]) -> float:
    """Return the percentage of examples whose whole target is predicted correctly."""
    predictions = task.predict([example.source for example in examples])
    correct = [
        best[0].text == example.target for best, example in zip(predictions, examples, strict=True)
    ]
    return 100 * sum(correct) / len(correct)
