"""Checkpoints at intervals, written in the background; a killed run loses the steps since then."""

import threading
from dataclasses import replace

import pytest
import torch

from regard.core.errors import CheckpointError
from regard.core.files import read_json
from regard.training import checkpoint, saving
from regard.training.checkpoint import read_weights
from tests.training_bench import SHORT, Bench, assert_same_weights, build_model

NEVER_VALIDATED = replace(SHORT, validate_every=100)


class KilledError(Exception):
    """Ends a training without saving anything."""


def kill_at(number):
    def kill(num_losses):
        if num_losses == number:
            raise KilledError

    return kill


def saved_step(run):
    return read_json(run / "resume" / "training.json")["state"]["progress"]["step"]


def run_killed(run, config, number):
    with pytest.raises(KilledError):
        Bench(run, config, before_loss=kill_at(number)).run()


@pytest.mark.parametrize(("every", "killed_at", "step"), [(1, 8, 7), (3, 8, 6), (4, 4, 0)])
def test_killed_run_loses_the_steps_since_the_last_checkpoint(tmp_path, every, killed_at, step):
    config = replace(NEVER_VALIDATED, save_every_minutes=0, save_every_steps=every)
    run_killed(tmp_path, config, killed_at)
    assert saved_step(tmp_path) == step


def test_checkpoints_are_written_by_time(tmp_path):
    config = replace(NEVER_VALIDATED, save_every_minutes=0.1)
    bench = Bench(tmp_path, config)
    seconds = 4.0

    def wait(number):
        # Each step lasts 4 seconds: checkpoints are due after steps 2, 4, 6, …
        bench.trainer._started -= seconds
        if number == 8:
            raise KilledError

    bench.before_loss = wait
    with pytest.raises(KilledError):
        bench.run()
    assert saved_step(tmp_path) == 6


def test_without_intervals_a_killed_run_has_the_last_validation(tmp_path):
    run_killed(tmp_path, replace(SHORT, save_every_minutes=0), 9)
    assert saved_step(tmp_path) == 5


@pytest.mark.parametrize("killed_at", [2, 7, 9])
def test_killed_and_resumed_equals_uninterrupted(tmp_path, killed_at):
    config = replace(NEVER_VALIDATED, save_every_steps=2, log_every=1, ema_decay=0.9)

    def build(folder, before_loss=None):
        return Bench(tmp_path / folder, config, model=build_model(0.3), before_loss=before_loss)

    torch.manual_seed(1)
    whole = build("whole")
    whole.run()
    torch.manual_seed(1)
    with pytest.raises(KilledError):
        build("parts", kill_at(killed_at)).run()
    torch.manual_seed(99)
    second = build("parts")
    second.trainer.resume()
    second.run()
    assert_same_weights(second.present_weights(), whole.present_weights())
    assert_same_weights(
        read_weights(tmp_path / "parts/model.safetensors"),
        read_weights(tmp_path / "whole/model.safetensors"),
    )
    ours, theirs = ([row["loss"] for row in bench.rows("train")] for bench in (second, whole))
    assert ours == theirs


@pytest.fixture
def slow_writes(monkeypatch):
    """Writing waits for an event; returns the event and the list of written steps."""
    may_write, written = threading.Event(), []

    def write(run, snapshot):
        assert may_write.wait(timeout=30)
        checkpoint.write_snapshot(run, snapshot)
        written.append(snapshot.state["progress"]["step"])

    monkeypatch.setattr(saving, "write_snapshot", write)
    return may_write, written


def test_training_goes_on_while_a_checkpoint_is_written(tmp_path, slow_writes):
    may_write, written = slow_writes
    config = replace(NEVER_VALIDATED, save_every_minutes=60)
    reached = []

    def before_loss(number):
        if number == 6:
            reached.append((number, list(written)))
            may_write.set()

    Bench(tmp_path, config, before_loss=before_loss).run()
    assert reached == [(6, [])]
    assert written == [0, 10, 10]  # the start, the validation at the end, the end


def test_checkpoint_has_the_state_of_its_step_although_training_went_on(tmp_path, slow_writes):
    may_write, _ = slow_writes
    config = replace(NEVER_VALIDATED, save_every_minutes=60, max_steps=5)

    def before_loss(number):
        if number == 5:
            may_write.set()
            raise KilledError

    with pytest.raises(KilledError):
        Bench(tmp_path, config, before_loss=before_loss).run()
    assert saved_step(tmp_path) == 0
    assert_same_weights(
        read_weights(tmp_path / "resume/model.safetensors"), build_model().state_dict()
    )


def test_error_while_writing_ends_training(tmp_path, monkeypatch):
    def refuse(run, snapshot):
        raise CheckpointError("the disk is full")

    monkeypatch.setattr(saving, "write_snapshot", refuse)
    bench = Bench(tmp_path, replace(NEVER_VALIDATED, max_epochs=10_000))
    with pytest.raises(CheckpointError, match="the disk is full"):
        bench.run()
    assert bench.trainer.progress.step < 50_000


def test_error_of_the_last_checkpoint_is_raised(tmp_path, monkeypatch):
    def refuse(run, snapshot):
        raise CheckpointError("the disk is full")

    monkeypatch.setattr(saving, "write_snapshot", refuse)
    with pytest.raises(CheckpointError, match="the disk is full"):
        Bench(tmp_path, replace(NEVER_VALIDATED, save_every_minutes=0)).run()


def test_no_thread_is_left_after_an_error(tmp_path):
    run_killed(tmp_path, replace(NEVER_VALIDATED, save_every_steps=1), 5)
    assert not [one for one in threading.enumerate() if one.name.startswith("checkpoint")]
