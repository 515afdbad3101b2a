"""Plain and residual networks of 20 and 56 layers: training and test error by epoch.

He et al. 2016, section 4.2: 3 x 3 convolutions of 16, 32 and 64 channels, SGD with momentum 0.9,
weight decay 0.0001 and a learning rate of 0.1 that is divided by 10 twice.
"""

import multiprocessing
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import torch
from results import ABOUT, Row, rounded, write_results

from regard.core.device import find_device, seed_everything
from regard.core.files import read_json_lines
from regard.data.example import Example
from regard.data.splits import Splits
from regard.runs.provenance import describe_provenance
from regard.runs.request import Request
from regard.tasks.base import Task
from regard.tasks.table import task_class
from regard.training.loop import Trainer
from regard.training.validation import Validation

BLOCKS = {20: 3, 56: 9}
"""Blocks of each of the three stages by number of layers: 6 n + 2 layers have n blocks."""
BATCH, NUM_IMAGES = 128, 45_000
NUM_TRAIN = 5_000
"""Training images of the training error."""
SETTINGS = (
    "model.encoder.widths=[16, 32, 64]", f"data.batch.max_sentences={BATCH}",
    "data.source.augmentation.cutout=0", "train.label_smoothing=0", "train.clip_norm=0",
    "train.average_last=0", "train.precision=fp32", "train.optimizer.learning_rate=0.1",
    "train.optimizer.is_nesterov=false", "train.optimizer.weight_decay=0.0001",
    "train.schedule.kind=step", "train.schedule.gamma=0.1",
)  # fmt: skip
"""Overrides of `he2016`: the network and the training of the paper."""
REDUCTIONS = 0.4
"""Share of the steps between two reductions of the learning rate."""
COLUMNS = ("epoch", "step", "training_error", "error", "training_loss")


def depth(out: Path, options: Mapping[str, str]) -> None:
    """Train the four networks side by side and write their errors by epoch."""
    data, epochs = options.get("data", "cifar10"), int(options.get("epochs", 40))
    every = int(REDUCTIONS * epochs * -(-NUM_IMAGES // BATCH))
    settings = (*SETTINGS, f"train.max_epochs={epochs}", f"train.schedule.every_steps={every}")
    if "minutes" in options:
        settings += (f"train.max_minutes={options['minutes']}",)
    networks = list(product(("plain", "residual"), BLOCKS))
    train = partial(
        train_network, data=data, settings=settings, device=options.get("device", "auto")
    )
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(int(options.get("jobs", 4)), mp_context=spawn) as pool:
        rows = list(pool.map(train, *zip(*networks, strict=True)))
    words = " ".join(f"{key}={value}" for key, value in options.items())
    command = f"python benchmarks/run.py depth{words and f' --set {words}'}"
    compared = last_common_epoch(rows)
    value = {"experiment": "depth", "command": command, "epochs": epochs, "compared": compared}
    runs = [{**row, "test": {"scores": errors_at(row, compared)}} for row in rows]
    write_results(out / "depth.json", rounded({**value, "runs": runs}))


def last_common_epoch(rows: Sequence[Row]) -> int:
    """Return the last epoch that all networks completed: some may have been stopped in one."""
    curves = [row["curve"] for row in rows]
    steps_per_epoch = max(curve["step"][0] for curve in curves)
    return int(min(curve["step"][-1] // steps_per_epoch for curve in curves))


def errors_at(row: Row, epoch: int) -> Row:
    """Return the errors of a network after an epoch, as scores."""
    index = row["curve"]["epoch"].index(epoch)
    return {
        key: {"value": row["curve"][key][index], "name": f"{key} %"}
        for key in ("training_error", "error")
    }


def train_network(
    kind: str, layers: int, *, data: str, settings: tuple[str, ...], device: str
) -> Row:
    """Train one network and return its errors in percent after each epoch."""
    torch.set_num_threads(1)
    blocks = f"model.encoder.blocks={[BLOCKS[layers]] * 3}"
    overrides = (*settings, blocks, f"model.encoder.is_residual={str(kind == 'residual').lower()}")
    request = Request(data=(data,), recipe="he2016", settings=overrides, device=device)
    task, splits = prepare(request)
    with tempfile.TemporaryDirectory() as folder:
        rows = train_with_errors(task, splits, Path(folder), num_train=NUM_TRAIN)
    about = {key: value for key, value in describe_provenance(task.device).items() if key in ABOUT}
    return {
        "name": f"{kind} {layers}", "layers": layers, "seed": task.recipe.seed,
        "parameters": task.num_parameters, **about, "data": data, "overrides": list(overrides),
        "training": {"steps": rows[-1]["step"], "seconds": rows[-1]["seconds"]},
        "curve": {key: [row[key] for row in rows] for key in COLUMNS},
    }  # fmt: skip


def prepare(request: Request) -> tuple[Task[Any], Splits]:
    """Return an untrained task and its data."""
    recipe, splits = request.resolve()
    seed_everything(recipe.seed)
    device = find_device(request.device)
    return task_class(recipe).prepare(recipe, splits.train, device=device), splits


def train_with_errors(
    task: Task[Any], splits: Splits, folder: Path, *, num_train: int
) -> list[dict[str, Any]]:
    """Train and return the training and the test error of each epoch.

    Args:
        task: The model and its settings.
        splits: Training and test data.
        folder: Folder of the training log.
        num_train: Training images of the training error.
    """
    trainer = Trainer(
        task.model,
        task.recipe.train,
        folder,
        batches=task.training_batches(splits.train),
        loss=task.training_loss(splits.train),
        validate=_errors(task, splits.train[:num_train], splits.test),
        loggers=(),
    )
    seed_everything(task.recipe.seed)
    trainer.run()
    log = read_json_lines(folder / "journal.jsonl")
    return [row for row in log if row["kind"] == "valid"]


def _errors(
    task: Task[Any], seen_images: Sequence[Example], unseen_images: Sequence[Example]
) -> Callable[[], Validation]:
    """Return a function that measures the training and the test error in percent."""
    train, test = task.validation(seen_images), task.validation(unseen_images)

    def validate() -> Validation:
        seen, unseen = train().metrics, test().metrics
        errors = {"training_error": 100 - seen["accuracy"], "error": 100 - unseen["accuracy"]}
        # Only the curve is used: no weights are selected.
        return Validation(-errors["training_error"], {**errors, "training_loss": seen["loss"]})

    return validate
