import os
import signal
from dataclasses import replace

import pytest
import torch
from torch import nn

from regard.core.errors import CheckpointError
from regard.training.checkpoint import load_weights
from regard.training.validation import Validation
from tests.training_bench import (
    CAREFUL,
    NUM_CLASSES,
    SHORT,
    WIDTH,
    Batches,
    Bench,
    assert_same_weights,
    build_model,
    interrupt_at,
)


def stateful_bench(run, before_loss=None):
    """Return a bench with all kinds of state: dropout, Adam, a plateau after step 8, log rows."""
    bench = Bench(run, CAREFUL, model=build_model(0.3), before_loss=before_loss)
    trainer = bench.trainer
    trainer._validation = lambda: Validation(-abs(trainer.progress.step - 8.0))
    torch.manual_seed(1)
    return bench


@pytest.mark.parametrize("stop_at", [1, 4, 7, 8, 12, 17])
def test_interrupted_and_resumed_equals_uninterrupted(tmp_path, stop_at):
    uninterrupted = stateful_bench(tmp_path / "whole")
    uninterrupted.run()
    first = stateful_bench(tmp_path / "parts", before_loss=interrupt_at(stop_at))
    assert first.run().stopped == "interrupted"
    second = stateful_bench(tmp_path / "parts")
    second.trainer.resume()
    summary = second.run()
    assert_same_weights(second.present_weights(), uninterrupted.present_weights())
    assert_same_weights(second.model.state_dict(), uninterrupted.model.state_dict())
    for kind, names in (
        ("train", ("step", "loss", "gradient_norm", "learning_rate")),
        ("valid", ("step", "value", "is_best")),
    ):
        ours, theirs = (
            [[row[name] for name in names] for row in bench.rows(kind)]
            for bench in (second, uninterrupted)
        )
        assert ours == theirs
    assert replace(summary.progress, seconds=0) == replace(
        uninterrupted.trainer.progress, seconds=0
    )


def test_interrupt_while_accumulating_waits_for_the_whole_step(tmp_path):
    config = replace(SHORT, accumulate=2)
    torch.manual_seed(1)
    uninterrupted = Bench(tmp_path / "whole", config, model=build_model(0.3))
    uninterrupted.run()
    torch.manual_seed(1)
    parts = tmp_path / "parts"
    Bench(parts, config, model=build_model(0.3), before_loss=interrupt_at(4)).run()
    second = Bench(parts, config, model=build_model(0.3))
    second.trainer.resume()
    second.run()
    assert_same_weights(second.present_weights(), uninterrupted.present_weights())


def build_normed_model():
    torch.manual_seed(7)
    return nn.Sequential(nn.Linear(WIDTH, 8), nn.BatchNorm1d(8), nn.Linear(8, NUM_CLASSES))


@pytest.mark.parametrize("stop_at", [1, 4, 7])
def test_interrupted_run_has_the_running_statistics_of_its_last_step(tmp_path, stop_at):
    config, batches = replace(SHORT, accumulate=2), Batches(sizes=(2, 5, 3, 4))
    uninterrupted = Bench(tmp_path / "whole", config, model=build_normed_model(), batches=batches)
    uninterrupted.run()
    parts = tmp_path / "parts"
    interrupt = interrupt_at(stop_at)
    Bench(parts, config, model=build_normed_model(), batches=batches, before_loss=interrupt).run()
    second = Bench(parts, config, model=build_normed_model(), batches=batches)
    second.trainer.resume()
    second.run()
    assert "1.running_var" in second.present_weights()
    assert_same_weights(second.present_weights(), uninterrupted.present_weights())


def test_interrupted_validation_is_repeated(tmp_path):
    def refuse():
        raise KeyboardInterrupt

    first = Bench(tmp_path, SHORT)
    first.trainer._validation = refuse
    first.run()
    second = Bench(tmp_path, SHORT)
    second.trainer.resume()
    second.run()
    assert [row["step"] for row in second.rows("valid")] == [5, 10]


def test_resume_skips_batches_already_used(tmp_path):
    Bench(tmp_path, SHORT, before_loss=interrupt_at(9)).run()
    bench = Bench(tmp_path, SHORT)
    bench.trainer.resume()
    bench.run()
    assert bench.batches.epochs == [(1, 4)]


def test_finished_run_can_be_resumed_with_more_epochs(tmp_path):
    Bench(tmp_path, SHORT).run()
    bench = Bench(tmp_path, replace(SHORT, max_epochs=3))
    bench.trainer.resume()
    assert bench.run().progress.step == 15


def test_resuming_a_killed_run_repeats_no_log_rows(tmp_path):
    def crash(step):
        if step == 8:
            raise RuntimeError("killed")

    config = replace(SHORT, log_every=1)
    with pytest.raises(RuntimeError):
        Bench(tmp_path, config, before_loss=crash).run()
    bench = Bench(tmp_path, config)
    bench.trainer.resume()
    bench.run()
    assert [row["step"] for row in bench.rows("train")] == list(range(1, 11))


def test_interrupt_before_any_validation_leaves_usable_weights(tmp_path):
    bench = Bench(tmp_path, SHORT, before_loss=interrupt_at(3))
    bench.run()
    model = build_model()
    load_weights(model, tmp_path / "model.safetensors")
    assert_same_weights(model.state_dict(), bench.present_weights())


def test_sigterm_stops_training_like_ctrl_c(tmp_path):
    def terminate(step):
        if step == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    summary = Bench(tmp_path, SHORT, before_loss=terminate).run()
    assert (summary.stopped, summary.progress.step) == ("interrupted", 3)


def test_new_run_removes_the_state_of_an_earlier_one(tmp_path):
    Bench(tmp_path, replace(SHORT, average_last=3)).run()
    bench = Bench(tmp_path, replace(SHORT, max_steps=2), before_loss=interrupt_at(1))
    bench.run()
    assert [row["step"] for row in bench.rows("stop")] == [1]
    assert not [*(tmp_path / "averages").glob("*.safetensors")]


def test_resume_without_a_state_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="has no state to resume from"):
        Bench(tmp_path, SHORT).trainer.resume()
