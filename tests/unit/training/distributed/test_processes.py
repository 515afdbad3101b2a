"""Training by several processes equals training by one."""

import itertools
import math
import os
import signal
import sys
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from regard.core.errors import ConfigError, DataError, RegardError
from regard.training import checkpoint, loop, saving
from regard.training.distributed.joining import join_processes
from regard.training.distributed.shares import Shares
from regard.training.optimizers import AdamConfig, MuonConfig
from regard.training.settings import TrainConfig
from tests.processes import run_processes
from tests.training_bench import NUM_CLASSES, WIDTH, Batch, Bench

CONFIG = TrainConfig(
    max_epochs=2,
    log_every=1,
    validate_every=4,
    accumulate=2,
    clip_norm=0.1,
    optimizer=AdamConfig(learning_rate=0.02),
)


PARALLEL = ["ddp", pytest.param("fsdp", marks=pytest.mark.faults)]


class PlannedBatches:
    """Batches of different sizes; those of one example have none for the second process."""

    def __init__(self, sizes=(2, 5, 3, 1, 4, 1)):
        self.sizes = sizes

    def plan(self, number):
        order = np.random.default_rng(number).permutation(sum(self.sizes))
        return np.split(order, np.cumsum(self.sizes)[:-1])

    def stack(self, rows, number):
        generator = torch.Generator().manual_seed(number)
        pool = torch.randn(sum(self.sizes), WIDTH, generator=generator)
        inputs = pool[torch.from_numpy(rows)]
        return Batch(inputs, inputs[:, :NUM_CLASSES].argmax(dim=-1), tuple(rows.tolist()))

    def epoch(self, number, *, skip=0):
        for rows in self.plan(number)[skip:]:
            yield self.stack(rows, number)

    def num_batches(self, number):
        return len(self.sizes)


class Stacked(nn.Module):
    """A model with blocks, one of which has a parameter that another block uses as well."""

    def __init__(self, has_norm=False):
        super().__init__()
        torch.manual_seed(7)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(3)
        )
        self.blocks[2][0].bias = self.blocks[1][0].bias
        self.norm = nn.BatchNorm1d(WIDTH) if has_norm else nn.Identity()
        self.dropout = nn.Dropout(0.0)
        self.output = nn.Linear(WIDTH, NUM_CLASSES)

    def forward(self, inputs):
        for block in self.blocks:
            inputs = block(inputs)
        return self.output(self.dropout(self.norm(inputs)))


def build_bench(folder, config=CONFIG, *, dropout=0.0, sizes=(2, 5, 3, 1, 4, 1), event=None):
    model = Stacked()
    model.dropout.p = dropout
    torch.manual_seed(1)
    return Bench(folder, config, model=model, batches=PlannedBatches(sizes), before_loss=event)


def outcome(bench):
    """Run a bench; return its weights, its log and its summary."""
    summary = bench.run()
    state = {name: tensor.clone() for name, tensor in bench.model.state_dict().items()}
    return state, bench.rows("train"), bench.rows("valid"), summary


def train(folder, config, *, is_resumed=False, **options):
    with join_processes("cpu"):
        bench = build_bench(folder, config, **options)
        if is_resumed:
            bench.trainer.resume()
        return outcome(bench)


def resume(folder, config):
    return train(folder, config, is_resumed=True)


def rank():
    return int(os.environ["RANK"])


def assert_equal_training(results, expected):
    for state, _, _, summary in results:
        for name, tensor in expected[0].items():
            torch.testing.assert_close(state[name], tensor, rtol=0, atol=1e-5, msg=name)
        assert replace(summary.progress, seconds=0) == replace(expected[3].progress, seconds=0)
    _, rows, validations, _ = results[0]
    for kind, ours in ((1, rows), (2, validations)):
        assert len(ours) == len(expected[kind]) > 1
        for row, other in zip(ours, expected[kind], strict=True):
            for name in ("step", "loss", "nll", "gradient_norm", "learning_rate", "value"):
                if name in other:
                    assert row[name] == pytest.approx(other[name], abs=1e-5), name


@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_two_processes_train_as_one(tmp_path, parallel):
    expected = outcome(build_bench(tmp_path / "one"))
    config = replace(CONFIG, parallel=parallel)
    results = run_processes(2, train, tmp_path / "two", config)
    assert_equal_training(results, expected)


def train_with_a_fast_clock(folder, config):
    """Train with clocks that differ: each process alone would save at other steps."""
    if rank() == 1:
        loop.time = SimpleNamespace(perf_counter=lambda: 1000 * time.perf_counter())
    return train(folder, config)


@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_processes_agree_on_the_time_of_checkpoints(tmp_path, parallel):
    expected = outcome(build_bench(tmp_path / "one"))
    config = replace(CONFIG, parallel=parallel, save_every_minutes=0.02 / 60)
    results = run_processes(2, train_with_a_fast_clock, tmp_path / "two", config)
    assert_equal_training(results, expected)


def train_with_nan(folder, config):
    """Train with NaN from step 16 to 28, and with a slow disk."""

    def write_slowly(run, snapshot):
        time.sleep(0.5)
        checkpoint.write_snapshot(run, snapshot)

    saving.write_snapshot = write_slowly
    with join_processes("cpu"):
        bench = build_bench(folder, config)
        compute, calls = bench.trainer._gradients._loss, itertools.count(1)

        def loss(batch):
            result = compute(batch)
            is_bad = 16 <= next(calls) <= 28
            return replace(result, total=result.total * math.nan) if is_bad else result

        bench.trainer._gradients._loss = loss
        return outcome(bench)


def test_processes_return_to_the_same_checkpoint(tmp_path):
    config = replace(CONFIG, accumulate=1, max_epochs=10, validate_every=5, log_every=4)
    (first, *_, summary), (second, *_, other) = run_processes(2, train_with_nan, tmp_path, config)
    assert summary.progress.num_returns == other.progress.num_returns == 1
    assert summary.progress.step == other.progress.step == 60
    assert all(torch.equal(tensor, second[name]) for name, tensor in first.items())


def interrupt_second(number):
    if number == 5 and rank() == 1:
        signal.raise_signal(signal.SIGTERM)


def train_interrupted(folder, config, dropout=0.0):
    return train(folder, config, event=interrupt_second, dropout=dropout)


@pytest.mark.parametrize("parallel", PARALLEL)
def test_a_signal_to_one_process_interrupts_all_at_the_same_step(tmp_path, parallel):
    config = replace(CONFIG, parallel=parallel)
    results = run_processes(2, train_interrupted, tmp_path, config)
    assert [summary.stopped for *_, summary in results] == ["interrupted"] * 2
    assert [summary.progress.step for *_, summary in results] == [3, 3]


@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_a_checkpoint_of_two_processes_resumes_on_one(tmp_path, parallel):
    expected = outcome(build_bench(tmp_path / "one"))
    run_processes(2, train_interrupted, tmp_path / "two", replace(CONFIG, parallel=parallel))
    assert_equal_training([resume(tmp_path / "two", CONFIG)], expected)


@pytest.mark.parametrize("parallel", PARALLEL)
def test_a_checkpoint_of_one_process_resumes_on_three(tmp_path, parallel, monkeypatch):
    expected = outcome(build_bench(tmp_path / "one"))
    monkeypatch.setenv("RANK", "1")
    assert outcome(build_bench(tmp_path / "three", event=interrupt_second))[3].stopped
    config = replace(CONFIG, parallel=parallel)
    assert_equal_training(run_processes(3, resume, tmp_path / "three", config), expected)


def train_with_dropout(folder, config):
    return train(folder, config, dropout=0.5)


def resume_with_dropout(folder, config):
    return train(folder, config, is_resumed=True, dropout=0.5)


@pytest.mark.parametrize("parallel", PARALLEL)
def test_interrupted_and_resumed_equals_uninterrupted_with_dropout(tmp_path, parallel):
    config = replace(CONFIG, parallel=parallel)
    (whole, *_), _ = run_processes(2, train_with_dropout, tmp_path / "whole", config)
    run_processes(2, train_interrupted, tmp_path / "parts", config, 0.5)
    (parts, *_), _ = run_processes(2, resume_with_dropout, tmp_path / "parts", config)
    for name, tensor in whole.items():
        assert torch.equal(parts[name], tensor), name


def sample_masks(step):
    with join_processes("cpu") as processes:
        model = nn.Linear(1, 1)
        torch.manual_seed(3)
        processes.start(model, torch.optim.SGD(model.parameters()))
        processes.begin_step(step)
        return torch.rand(4).tolist()


def test_dropout_masks_of_processes_and_steps_differ():
    torch.manual_seed(3)
    alone = torch.rand(4).tolist()
    first, second, third = run_processes(3, sample_masks, 1)
    assert first == alone and len({*first, *second, *third}) == 12
    assert run_processes(2, sample_masks, 2)[1] not in (first, second)
    assert run_processes(2, sample_masks, 1)[1] == second


def train_normed(folder):
    with join_processes("cpu"):
        torch.manual_seed(7)
        model = nn.Sequential(nn.BatchNorm1d(WIDTH), nn.Linear(WIDTH, NUM_CLASSES))
        config = TrainConfig(max_steps=1)
        bench = Bench(folder, config, model=model, batches=PlannedBatches(sizes=(8,)))
        outcome(bench)
        return model[0].running_mean


def test_running_statistics_of_batch_norms_are_means_over_the_processes(tmp_path):
    batch = next(PlannedBatches(sizes=(8,)).epoch(0))
    expected = 0.1 * batch.inputs.mean(0)
    for found in run_processes(2, train_normed, tmp_path):
        torch.testing.assert_close(found, expected)


def fill_memory(number):
    if number == 2 and rank() == 1:
        raise torch.OutOfMemoryError


def train_in_little_memory(folder, config):
    return train(folder, config, event=fill_memory)


@pytest.mark.faults
def test_a_process_without_memory_computes_its_batches_in_parts(tmp_path):
    expected = outcome(build_bench(tmp_path / "one"))
    results = run_processes(2, train_in_little_memory, tmp_path / "two", CONFIG)
    assert_equal_training(results, expected)


def report(function, *arguments):
    """Run a function as a command would; write what the process prints to a file."""
    folder = arguments[0]
    sys.stderr = (folder / f"stderr-{rank()}").open("w")
    try:
        function(*arguments)
    except RegardError as error:
        if rank() == 0:
            print(f"regard: {error}", file=sys.stderr)
        raise
    finally:
        sys.stderr.flush()


def printed(folder):
    """Return what all processes have printed."""
    return "".join(path.read_text() for path in sorted(folder.glob("stderr-*")))


@pytest.mark.faults
def test_a_sharded_process_without_memory_ends_all(tmp_path):
    config = replace(CONFIG, parallel="fsdp")
    started = time.monotonic()
    first, second = run_processes(2, report, train_in_little_memory, tmp_path, config)
    assert first is None and "does not fit into memory" in second
    assert "regard: process 1 (PID " in printed(tmp_path)
    assert printed(tmp_path).count("Step 1 does not fit into memory.") == 1
    assert time.monotonic() - started < 20


def die(number):
    if number == 5 and rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def train_until_death(folder, config):
    return train(folder, config, event=die)


@pytest.mark.parametrize("parallel", PARALLEL)
def test_if_a_process_dies_the_others_end_and_name_it(tmp_path, parallel):
    config = replace(CONFIG, parallel=parallel)
    started = time.monotonic()
    assert run_processes(3, report, train_until_death, tmp_path, config) == [None] * 3
    assert time.monotonic() - started < 20
    lines = [line for line in printed(tmp_path).splitlines() if line.startswith("regard:")]
    assert len(lines) == 1
    assert lines[0].startswith("regard: process 1 (PID ") and "has died" in lines[0]


def die_first(number):
    if number == 5 and rank() == 0:
        os.kill(os.getpid(), signal.SIGKILL)


def train_until_death_of_first(folder, config):
    return train(folder, config, event=die_first)


@pytest.mark.faults
def test_if_the_first_process_dies_the_others_end(tmp_path):
    assert run_processes(2, report, train_until_death_of_first, tmp_path, CONFIG) == [None] * 2
    assert "regard: process 0 has died" in printed(tmp_path)


def validate_slowly(folder):
    with join_processes("cpu"):
        bench = build_bench(folder)

        def validate():
            (folder / "validating").touch()
            time.sleep(600)

        bench.trainer._validation = validate
        if rank() == 1:
            bench.trainer._evaluate = None
            threading.Thread(target=die_when, args=(folder / "validating",)).start()
        bench.run()


def die_when(path):
    while not path.exists():
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.faults
def test_a_death_during_a_validation_ends_the_others(tmp_path):
    started = time.monotonic()
    assert run_processes(2, report, validate_slowly, tmp_path) == [None] * 2
    assert "regard: process 1 (PID " in printed(tmp_path)
    assert time.monotonic() - started < 20


def train_with_broken_data(folder):
    with join_processes("cpu"):
        if rank() == 1:
            raise DataError("pairs.tsv is missing.")
        build_bench(folder).run()


def test_an_error_of_one_process_is_printed_by_the_first(tmp_path):
    first, second = run_processes(2, report, train_with_broken_data, tmp_path)
    assert first is None and "DataError: pairs.tsv is missing." in second
    assert printed(tmp_path).startswith("regard: process 1 (PID ")
    assert printed(tmp_path).endswith(": pairs.tsv is missing.\n")


def train_with_wrong_setting(folder):
    with join_processes("cpu"):
        raise ConfigError("`train.steps` is not a setting.")


@pytest.mark.faults
def test_an_error_of_all_processes_is_printed_once(tmp_path):
    results = run_processes(3, report, train_with_wrong_setting, tmp_path)
    assert printed(tmp_path) == "regard: `train.steps` is not a setting.\n"
    assert all("ConfigError" in result for result in results if result is not None)


def fail_in_first(folder):
    with join_processes("cpu") as processes:
        processes.from_first(refuse)


def refuse():
    raise ConfigError("the folder is used.")


def test_an_error_of_the_first_process_is_raised_in_all(tmp_path):
    for result in run_processes(2, report, fail_in_first, tmp_path):
        assert result is None or result.endswith("Error: the folder is used.\n")
    assert printed(tmp_path) == "regard: the folder is used.\n"


def train_on_other_data(folder, config):
    return train(folder, config, sizes=(2, 5, 3, 1, 4, 1 + rank()))


@pytest.mark.faults
def test_processes_with_different_data_are_an_error(tmp_path):
    _, second = run_processes(2, report, train_on_other_data, tmp_path, CONFIG)
    assert "Process 1 has other data or another model than process 0." in second


def exchange_values():
    with join_processes("cpu") as processes:
        value = {"loss": float("nan"), "names": ["ä", None], "rank": processes.rank}
        return processes.from_first(lambda: value), processes.rank, processes.num


def test_all_processes_get_the_value_of_the_first():
    for number, (value, rank, num) in enumerate(run_processes(2, exchange_values)):
        assert (rank, num) == (number, 2)
        assert str(value) == "{'loss': nan, 'names': ['ä', None], 'rank': 0}"


def test_batches_without_a_plan_are_an_error():
    with pytest.raises(ConfigError, match="must have the methods `plan` and `stack`.*list has not"):
        Shares([], rank=0, num=2)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"ema_decay": 0.9}, "`ema_decay` is 0.9"),
        ({"compile": "always"}, "`compile` is 'always'"),
        ({"optimizer": MuonConfig()}, "`optimizer.kind` is 'muon'"),
    ],
)
def test_settings_that_need_whole_matrices_are_refused(settings, name):
    with pytest.raises(ConfigError, match=f"`parallel` must be 'ddp' if {name}, but is 'fsdp'"):
        TrainConfig(parallel="fsdp", **settings)
