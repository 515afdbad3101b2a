import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from regard.core.errors import RegardError
from regard.training.losses import Loss
from regard.training.optimizers import AdamConfig
from tests.training_bench import (
    NUM_CLASSES,
    SHORT,
    WIDTH,
    Batches,
    Bench,
    assert_same_weights,
    interrupt_at,
)

LONG = replace(SHORT, max_epochs=12, log_every=4, patience=0)


def break_losses(bench, is_bad, factor=math.nan):
    """Multiply losses, and so their gradients, by a factor if `is_bad` of their number, from 1."""

    def loss(batch):
        good = Bench.loss(bench, batch)
        return replace(good, total=good.total * factor) if is_bad(bench.num_losses) else good

    bench.trainer._gradients._loss = loss
    return bench


def weights_after(bench):
    bench.run()
    return bench.present_weights()


@pytest.mark.parametrize("clip_norm", [0.0, 1.0])
@pytest.mark.parametrize("factor", [math.nan, math.inf])
def test_step_that_is_not_finite_is_skipped_counted_and_reported(
    tmp_path, caplog, factor, clip_norm
):
    config = replace(SHORT, clip_norm=clip_norm)
    bench = break_losses(Bench(tmp_path, config), lambda number: number in (4, 5), factor)
    weights = weights_after(bench)
    assert all(tensor.isfinite().all() for tensor in weights.values())
    assert bench.trainer.progress.step == 10
    assert all(math.isfinite(row["loss"]) for row in bench.rows("train"))
    kind = "NaN" if math.isnan(factor) else "infinite"
    warnings = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == [
        f"The loss became {kind} between steps 4 and 6: 2 of 3 updates were skipped."
    ]


def test_skipped_steps_leave_the_weights_and_the_means_of_the_log(tmp_path):
    sizes = (2, 5, 3, 1, 4)
    config = replace(SHORT, max_epochs=1, log_every=5)
    # The third batch is skipped, or does not exist.
    ours = break_losses(Bench(tmp_path / "a", config), lambda number: number == 3)

    class Others(Batches):
        def epoch(self, number, skip=0):
            batches = list(super().epoch(number, skip))
            yield from [*batches[:2], *batches[3:]]

    plain = Bench(tmp_path / "b", replace(config, log_every=4), batches=Others(sizes))
    assert_same_weights(weights_after(ours), weights_after(plain))
    for name in ("loss", "gradient_norm"):
        assert ours.rows("train")[0][name] == pytest.approx(plain.rows("train")[0][name])


def test_gradient_that_is_not_finite_is_named(tmp_path, caplog):
    bench = Bench(tmp_path, replace(SHORT, log_every=1))

    def loss(batch):
        good = Bench.loss(bench, batch)
        hooked = good.total.clone()
        if bench.num_losses == 2:
            hooked.register_hook(lambda gradient: gradient * math.inf)
        return Loss(hooked, good.nll, good.count)

    bench.trainer._gradients._loss = loss
    bench.run()
    assert "The gradient norm became NaN between steps 2 and 2: 1 of 1 updates" in caplog.text


def test_one_bad_batch_of_an_accumulated_update_skips_the_whole_update(tmp_path):
    config = replace(SHORT, accumulate=2, max_epochs=1)
    bench = break_losses(Bench(tmp_path, config), lambda number: number >= 3)
    skipped = weights_after(bench)
    one = Bench(tmp_path / "one", replace(config, max_steps=1))
    assert_same_weights(skipped, weights_after(one))


def test_skipped_step_leaves_running_statistics(tmp_path):
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(WIDTH, 8), nn.BatchNorm1d(8), nn.Linear(8, NUM_CLASSES))
    bench = Bench(tmp_path, SHORT, model=model, batches=Batches(sizes=(2, 5, 3, 4)))
    original = model[0].forward

    def forward(inputs):
        return original(inputs) * (math.nan if bench.num_losses == 3 else 1)

    model[0].forward = forward
    assert weights_after(bench)["1.running_var"].isfinite().all()


def test_repeated_steps_that_are_not_finite_return_training_to_the_last_checkpoint(
    tmp_path, caplog
):
    # Validations, and so checkpoints, are after steps 5, 10 and 15; step 16 to 28 are skipped.
    bench = break_losses(Bench(tmp_path, LONG), lambda number: 16 <= number <= 28)
    bench.run()
    messages = [record.message for record in caplog.records if "returns" in record.message]
    assert messages == [
        "The loss became NaN between steps 25 and 28: 4 of 4 updates were skipped. "
        "Training returns to step 15, with half the learning rate."
    ]
    rows = bench.rows("train")
    assert [row["step"] for row in rows] == list(range(4, 61, 4))
    assert [row["learning_rate"] for row in rows] == [0.02] * 3 + [0.01] * 12
    assert bench.trainer.progress.num_returns == 1


def test_returned_training_equals_one_resumed_there_with_half_the_learning_rate(tmp_path):
    ours = break_losses(Bench(tmp_path / "a", LONG), lambda number: 16 <= number <= 28)
    Bench(tmp_path / "b", replace(LONG, max_epochs=3)).run()
    slower = replace(LONG, optimizer=AdamConfig(learning_rate=0.01))
    theirs = Bench(tmp_path / "b", slower)
    theirs.trainer.resume()
    assert_same_weights(weights_after(ours), weights_after(theirs))


def test_training_fails_after_three_returns_and_keeps_the_last_good_state(tmp_path, caplog):
    bench = break_losses(Bench(tmp_path, LONG), lambda number: number >= 8)
    message = (
        r"The loss became NaN between steps \d+ and \d+: .* Lower `train.optimizer.learning_rate` "
        r"\(now 0.02\), .* or set `train.clip_norm` \(now 1\).* unchanged."
    )
    with pytest.raises(RegardError, match=message):
        bench.run()
    assert caplog.text.count("Training returns to step 5, with half") == 3
    one = Bench(tmp_path / "one", replace(LONG, max_epochs=1))
    assert_same_weights(bench.present_weights(), weights_after(one))


def test_run_without_a_checkpoint_fails(tmp_path):
    config = replace(LONG, validate_every=50, save_every_minutes=0)
    bench = break_losses(Bench(tmp_path, config), lambda number: True)
    with pytest.raises(RegardError, match="between steps 9 and 12: 4 of 4 updates were skipped"):
        bench.run()


@pytest.mark.parametrize("stop_at", [14, 17, 21, 26])
def test_interrupted_and_resumed_equals_uninterrupted_around_skipped_steps(tmp_path, stop_at):
    def is_bad(step):
        return step in (13, 14) or 17 <= step <= 28

    def run(folder, before_loss=None):
        bench = Bench(tmp_path / folder, LONG, before_loss=before_loss)
        # Bad steps by their number, but good ones after the return.
        trainer = bench.trainer

        def loss(batch):
            good = Bench.loss(bench, batch)
            step = trainer.progress.step + 1
            is_broken = is_bad(step) and not trainer.progress.num_returns
            return replace(good, total=good.total * math.nan) if is_broken else good

        trainer._gradients._loss = loss
        return bench

    uninterrupted = run("whole")
    uninterrupted.run()
    run("parts", before_loss=interrupt_at(stop_at)).run()
    second = run("parts")
    second.trainer.resume()
    second.run()
    assert uninterrupted.trainer.progress.num_returns == 1
    assert_same_weights(second.present_weights(), uninterrupted.present_weights())
    names = ("step", "loss", "gradient_norm", "learning_rate")
    ours, theirs = (
        [[row[name] for name in names] for row in bench.rows("train")]
        for bench in (second, uninterrupted)
    )
    assert ours == theirs
