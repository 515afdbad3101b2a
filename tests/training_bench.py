"""Trainer of a very small classifier, for tests of the training loop."""

import signal
from dataclasses import dataclass, replace

import torch
from torch import nn

from regard.core.files import read_json_lines
from regard.data.batch import split_rows
from regard.training.checkpoint import read_weights
from regard.training.loggers.display import LineDisplay
from regard.training.loop import Trainer
from regard.training.losses import cross_entropy
from regard.training.optimizers import AdamConfig
from regard.training.schedules import PlateauConfig
from regard.training.settings import TrainConfig
from regard.training.validation import Validation

NUM_CLASSES, WIDTH = 3, 4


@dataclass(frozen=True)
class Batch:
    inputs: torch.Tensor
    labels: torch.Tensor
    rows: tuple[int, ...]

    @property
    def num_target_tokens(self):
        return len(self.labels)

    def split(self, num_parts):
        return split_rows(self, num_parts, "inputs", "labels")


class Batches:
    """Batches of different sizes, for which a mean of means is not the mean."""

    def __init__(self, sizes=(2, 5, 3, 1, 4)):
        self.sizes = sizes
        self.epochs = []

    def epoch(self, number, skip=0):
        self.epochs.append((number, skip))
        generator = torch.Generator().manual_seed(number)
        pool = torch.randn(sum(self.sizes), WIDTH, generator=generator)
        for inputs in pool.split(self.sizes)[skip:]:
            labels = inputs[:, :NUM_CLASSES].argmax(dim=-1)
            yield Batch(inputs, labels, tuple(range(len(labels))))

    def num_batches(self, epoch):
        return len(self.sizes)


def build_model(dropout=0.0):
    torch.manual_seed(7)
    return nn.Sequential(nn.Linear(WIDTH, 8), nn.Dropout(dropout), nn.Linear(8, NUM_CLASSES))


class Bench:
    """Trainer with model and data; `values` and `losses` are those of the validations, in order."""

    def __init__(
        self,
        run,
        config,
        *,
        model=None,
        batches=None,
        values=None,
        losses=None,
        before_loss=None,
        loggers=None,
    ):
        self.run_folder = run
        self.model = model or build_model()
        self.batches = batches or Batches()
        self.values = iter(values) if values else None
        self.losses = iter(losses) if losses else None
        self.before_loss = before_loss or (lambda step: None)
        self.num_losses = 0
        self.trainer = Trainer(
            self.model,
            config,
            run,
            batches=self.batches,
            loss=self.loss,
            validate=self.validate,
            loggers=loggers or [LineDisplay()],
        )

    def loss(self, batch):
        self.num_losses += 1
        logits = self.model(batch.inputs)
        self.before_loss(self.num_losses)
        mask = torch.ones(1, len(batch.labels), dtype=torch.bool)
        return cross_entropy(logits[None], batch.labels[None], mask)

    def validate(self):
        if self.values:
            metrics = {"loss": next(self.losses)} if self.losses else {}
            return Validation(next(self.values), metrics)
        (batch,) = Batches(sizes=(50,)).epoch(1000)
        accuracy = (self.model(batch.inputs).argmax(dim=-1) == batch.labels).double().mean().item()
        return Validation(accuracy, {"accuracy": accuracy})

    def run(self):
        return self.trainer.run()

    def rows(self, kind):
        rows = read_json_lines(self.run_folder / "journal.jsonl")
        return [row for row in rows if row["kind"] == kind]

    def present_weights(self):
        return read_weights(self.run_folder / "resume" / "model.safetensors")


def interrupt_at(number):
    def interrupt(step):
        if step == number:
            signal.raise_signal(signal.SIGINT)

    return interrupt


def assert_same_weights(ours, theirs):
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert torch.equal(tensor, theirs[name]), name


SHORT = TrainConfig(max_epochs=2, log_every=3, optimizer=AdamConfig(learning_rate=0.02))
CAREFUL = replace(SHORT, max_epochs=4, schedule=PlateauConfig(patience=1), validate_every=4)
