"""Plain and residual networks of 20 and 56 layers: training and test error by epoch.

He et al. 2016, section 4.2: 3 x 3 convolutions of 16, 32 and 64 channels, SGD with momentum 0.9,
weight decay 0.0001 and a learning rate of 0.1 that is divided by 10 twice.
"""

import multiprocessing
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import torch
from results import Row, rounded, write_results

from regard.core.device import find_device, seed_everything
from regard.core.files import read_json_lines
from regard.data.splits import Splits
from regard.runs import folder as runs
from regard.runs.request import Request
from regard.tasks.base import Task
from regard.tasks.table import task_class
from regard.training.loop import Trainer, Validation

BLOCKS = {20: 3, 56: 9}
"""Blocks of each of the three stages by number of layers: 6 n + 2 layers have n blocks."""
BATCH = 128
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
NUM_TRAIN = 5_000
"""Training images of the training error, which are classified without augmentation."""


def depth(out: Path, options: Mapping[str, str]) -> None:
    """Train the four networks side by side and write their errors by epoch."""
    data, epochs = options.get("data", "cifar10"), int(options.get("epochs", 30))
    named = {
        f"{kind} {layers}": (layers, kind == "residual")
        for kind, layers in product(("plain", "residual"), BLOCKS)
    }
    limit = f"train.max_minutes={options.get('minutes', '0')}"
    train = partial(
        train_network, data=data, epochs=epochs, limit=limit, device=options.get("device", "auto")
    )
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(int(options.get("jobs", 4)), mp_context=spawn) as pool:
        rows = list(pool.map(train, named, *zip(*named.values(), strict=True)))
    command = f"python benchmarks/run.py depth --set data={data} epochs={epochs}"
    value = {"experiment": "depth", "command": command, "epochs": epochs, "runs": rows}
    write_results(out / "depth.json", rounded(value))


def train_network(
    name: str, layers: int, is_residual: bool, *, data: str, epochs: int, limit: str, device: str
) -> Row:
    """Train one network and return its errors in percent after each epoch."""
    torch.set_num_threads(1)
    request = Request(data=(data,), recipe="he2016", settings=_settings(layers, is_residual))
    recipe, splits = request.resolve()
    steps = epochs * -(-len(splits.train) // BATCH)
    limits = f"train.max_epochs={epochs}", f"train.schedule.every_steps={int(REDUCTIONS * steps)}"
    settings = (*request.settings, *limits)
    timed = replace(request, settings=(*settings, limit))
    recipe, splits = timed.resolve()
    seed_everything(recipe.seed)
    task = task_class(recipe).prepare(recipe, splits.train, device=find_device(device))
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            task.model,
            recipe.train,
            Path(folder),
            batches=task.training_batches(splits.train),
            loss=task.training_loss(splits.train),
            validate=_errors(task, splits),
        )
        progress = trainer.run().progress
        log = read_json_lines(Path(folder) / "journal.jsonl")
    rows = [row for row in log if row["kind"] == "valid"]
    columns = ("epoch", "training_error", "error", "training_loss")
    last = {key: {"value": rows[-1][key], "name": f"{key} %"} for key in columns[1:3]}
    return {
        "name": name, "layers": layers, "seed": recipe.seed, "parameters": task.num_parameters,
        **runs.describe_provenance(task.device), "data": data, "overrides": list(settings),
        "training": {"steps": progress.step, "seconds": round(progress.seconds, 1)},
        "curve": {key: [row[key] for row in rows] for key in columns}, "test": {"scores": last},
    }  # fmt: skip


def _settings(layers: int, is_residual: bool) -> tuple[str, ...]:
    blocks = f"model.encoder.blocks={[BLOCKS[layers]] * 3}"
    return (*SETTINGS, blocks, f"model.encoder.is_residual={str(is_residual).lower()}")


def _errors(task: Task[Any], splits: Splits) -> Callable[[], Validation]:
    """Return a function that measures the training and the test error in percent."""
    train, test = task.validation(splits.train[:NUM_TRAIN]), task.validation(splits.test)

    def validate() -> Validation:
        seen, unseen = train().metrics, test().metrics
        errors = {"training_error": 100 - seen["accuracy"], "error": 100 - unseen["accuracy"]}
        # Only the curve is used: no weights are selected.
        return Validation(-errors["training_error"], {**errors, "training_loss": seen["loss"]})

    return validate
