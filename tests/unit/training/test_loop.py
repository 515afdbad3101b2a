import math
import time
from dataclasses import replace

import pytest
import torch
from torch import nn

from regard.core.errors import DataError
from regard.training import loop
from regard.training.optimizers import SgdConfig
from regard.training.schedules import InverseTimeConfig
from regard.training.settings import TrainConfig
from tests.training_bench import CAREFUL, SHORT, Batches, Bench, assert_same_weights, build_model


def test_a_small_classifier_learns(tmp_path):
    bench = Bench(tmp_path, replace(SHORT, max_epochs=60))
    bench.run()
    assert bench.validate().value > 0.85


@pytest.mark.parametrize("clip_norm", [0.0, 0.1])
def test_accumulated_batches_equal_one_large_batch(tmp_path, clip_norm):
    config = TrainConfig(max_steps=1, optimizer=SgdConfig(learning_rate=1.0), clip_norm=clip_norm)
    many = Bench(tmp_path / "many", replace(config, accumulate=5))
    one = Bench(tmp_path / "one", config, batches=Batches(sizes=(15,)))
    many.run()
    one.run()
    for ours, theirs in zip(many.model.parameters(), one.model.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_last_step_of_an_epoch_may_have_fewer_batches(tmp_path):
    bench = Bench(tmp_path, replace(SHORT, max_epochs=1, accumulate=2))
    assert bench.run().progress.step == 3


def test_step_equals_torch_with_clip_grad_norm(tmp_path):
    config = TrainConfig(max_steps=1, optimizer=SgdConfig(learning_rate=1.0), clip_norm=0.1)
    bench, reference = Bench(tmp_path, config), build_model()
    bench.run()
    batch = next(Batches().epoch(0))
    nn.functional.cross_entropy(reference(batch.inputs), batch.labels).backward()
    nn.utils.clip_grad_norm_(reference.parameters(), 0.1)
    torch.optim.SGD(reference.parameters(), lr=1.0).step()
    for ours, theirs in zip(bench.model.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_clipping_limits_the_norm_of_an_update(tmp_path):
    config = TrainConfig(max_steps=1, optimizer=SgdConfig(learning_rate=1.0), clip_norm=0.01)
    bench, before = Bench(tmp_path, config), build_model()
    bench.run()
    pairs = zip(bench.model.parameters(), before.parameters(), strict=True)
    length = math.sqrt(sum((ours - theirs).square().sum().item() for ours, theirs in pairs))
    assert length == pytest.approx(0.01, rel=1e-3)


def test_training_log_has_means_per_token(tmp_path):
    config = replace(SHORT, max_epochs=1, log_every=5, optimizer=SgdConfig(learning_rate=0.0))
    bench = Bench(tmp_path, config)
    bench.run()
    batches = list(Batches().epoch(0))
    inputs = torch.cat([batch.inputs for batch in batches])
    labels = torch.cat([batch.labels for batch in batches])
    expected = nn.functional.cross_entropy(build_model()(inputs), labels).item()
    assert bench.rows("train")[0]["loss"] == pytest.approx(expected, rel=1e-5)


def test_schedule_changes_the_learning_rate_of_all_groups(tmp_path):
    config = replace(SHORT, log_every=5, schedule=InverseTimeConfig())
    bench = Bench(tmp_path, config)
    bench.run()
    assert [row["learning_rate"] for row in bench.rows("train")] == [0.02, 0.01]
    assert {group["lr"] for group in bench.trainer._optimizer.param_groups} == {0.01}


def test_epochs_are_counted_from_one_in_the_training_log(tmp_path):
    bench = Bench(tmp_path, replace(SHORT, log_every=5))
    bench.run()
    assert [row["epoch"] for row in bench.rows("train")] == [1, 2]
    assert [row["epoch"] for row in bench.rows("valid")] == [1, 2]


def test_tokens_are_counted(tmp_path):
    assert Bench(tmp_path, SHORT).run().progress.tokens == 30


@pytest.mark.parametrize(
    ("settings", "reason", "step"),
    [
        ({"max_epochs": 2}, "epochs", 10),
        ({"max_steps": 3}, "steps", 3),
        ({"max_minutes": 1e-9}, "minutes", 0),
        ({"max_epochs": 9, "patience": 2}, "patience", 20),
    ],
)
def test_each_limit_ends_training(tmp_path, settings, reason, step):
    values = (0.5, 0.7, 0.6, 0.7, 0.8)
    summary = Bench(tmp_path, replace(SHORT, **settings), values=values).run()
    assert (summary.stopped, summary.progress.step) == (reason, step)


def test_patience_of_zero_never_ends_training(tmp_path):
    config = replace(SHORT, max_epochs=4, patience=0)
    assert Bench(tmp_path, config, values=(4, 3, 2, 1)).run().stopped == "epochs"


def test_prefetching_does_not_change_training(tmp_path, monkeypatch):
    def train(name):
        bench = Bench(tmp_path / name, CAREFUL, model=build_model(dropout=0.5))
        bench.run()
        return bench

    ahead = train("ahead")
    monkeypatch.setattr(loop, "prefetch", lambda batches: batches)
    plain = train("plain")
    assert_same_weights(ahead.present_weights(), plain.present_weights())
    assert [row["loss"] for row in ahead.rows("train")] == [
        row["loss"] for row in plain.rows("train")
    ]
    assert ahead.trainer.progress.position == plain.trainer.progress.position


def test_training_log_has_the_share_of_time_waiting_for_data(tmp_path):
    class SlowBatches(Batches):
        def epoch(self, number, skip=0):
            for batch in super().epoch(number, skip):
                time.sleep(0.05)
                yield batch

    quick, slow = Bench(tmp_path / "a", SHORT), Bench(tmp_path / "b", SHORT, batches=SlowBatches())
    quick.run()
    slow.run()
    assert all(0 <= row["waiting"] <= 1 for row in quick.rows("train") + slow.rows("train"))
    # A low threshold, as a busy machine may be slow elsewhere.
    assert max(row["waiting"] for row in slow.rows("train")) > 0.1


def test_error_while_building_a_batch_is_raised_unchanged(tmp_path):
    class BadBatches(Batches):
        def epoch(self, number, skip=0):
            yield from [*super().epoch(number, skip)][:2]
            raise DataError("the third batch is bad")

    with pytest.raises(DataError, match="the third batch is bad"):
        Bench(tmp_path, SHORT, batches=BadBatches()).run()


def test_end_is_written_to_the_training_log(tmp_path):
    bench = Bench(tmp_path, SHORT)
    bench.run()
    assert [row["reason"] for row in bench.rows("stop")] == ["epochs"]


def test_data_without_a_batch_is_refused(tmp_path):
    with pytest.raises(DataError, match="has no batches. Is the file empty"):
        Bench(tmp_path, SHORT, batches=Batches(sizes=()))


def test_freed_memory_is_released_before_and_after_each_validation(tmp_path, monkeypatch):
    events = []
    monkeypatch.setattr(loop, "release_memory", lambda: events.append("release"))
    bench = Bench(tmp_path, replace(SHORT, max_epochs=2))
    validate = bench.trainer._validation
    bench.trainer._validation = lambda: (events.append("validate"), validate())[1]
    bench.run()
    assert events == ["release", "validate", "release"] * 2
