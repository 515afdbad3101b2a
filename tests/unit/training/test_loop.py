import math
import os
import signal
import time
from dataclasses import dataclass, replace

import pytest
import torch
from torch import nn

from regard.core.config import from_dict, to_dict
from regard.core.errors import CheckpointError, ConfigError, DataError, RegardError
from regard.core.files import read_json_lines
from regard.training import loop
from regard.training.checkpoint import load_weights, read_weights
from regard.training.journal import LineDisplay
from regard.training.loop import Trainer, Validation
from regard.training.loss import Loss, cross_entropy
from regard.training.optim import AdamConfig, SgdConfig
from regard.training.schedule import InverseTimeConfig, PlateauConfig
from regard.training.settings import TrainConfig

NUM_CLASSES, WIDTH = 3, 4


@dataclass(frozen=True)
class Batch:
    inputs: torch.Tensor
    labels: torch.Tensor

    @property
    def num_target_tokens(self):
        return len(self.labels)


class Batches:
    """Sizes vary, so that a mean of means would not be the mean."""

    def __init__(self, sizes=(2, 5, 3, 1, 4)):
        self.sizes = sizes
        self.epochs = []

    def epoch(self, number, skip=0):
        self.epochs.append((number, skip))
        generator = torch.Generator().manual_seed(number)
        pool = torch.randn(sum(self.sizes), WIDTH, generator=generator)
        for inputs in pool.split(self.sizes)[skip:]:
            yield Batch(inputs, inputs[:, :NUM_CLASSES].argmax(dim=-1))

    def num_batches(self, epoch):
        return len(self.sizes)


def build_model(dropout=0.0):
    torch.manual_seed(7)
    return nn.Sequential(nn.Linear(WIDTH, 8), nn.Dropout(dropout), nn.Linear(8, NUM_CLASSES))


class Bench:
    """A trainer with its surroundings; `values` are what the validations find, in turn."""

    def __init__(self, run, config, *, model=None, batches=None, values=None, before_loss=None):
        self.run_folder = run
        self.model = model or build_model()
        self.batches = batches or Batches()
        self.values = iter(values) if values else None
        self.before_loss = before_loss or (lambda step: None)
        self.num_losses = 0
        self.trainer = Trainer(
            self.model,
            config,
            run,
            batches=self.batches,
            loss=self.loss,
            validate=self.validate,
            display=LineDisplay(),
        )

    def loss(self, batch):
        self.num_losses += 1
        logits = self.model(batch.inputs)
        self.before_loss(self.num_losses)
        mask = torch.ones(1, len(batch.labels), dtype=torch.bool)
        return cross_entropy(logits[None], batch.labels[None], mask)

    def validate(self):
        if self.values:
            return Validation(next(self.values))
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
            raise KeyboardInterrupt

    return interrupt


def assert_same_weights(ours, theirs):
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert torch.equal(tensor, theirs[name]), name


SHORT = TrainConfig(max_epochs=2, log_every=3, optimizer=AdamConfig(learning_rate=0.02))
CAREFUL = replace(SHORT, max_epochs=4, schedule=PlateauConfig(patience=1), validate_every=4)


def test_a_small_classifier_learns(tmp_path):
    bench = Bench(tmp_path, replace(SHORT, max_epochs=60))
    bench.run()
    assert bench.validate().value > 0.85


@pytest.mark.parametrize("clip_norm", [0.0, 0.1])
def test_accumulated_batches_make_the_step_of_one_large_batch(tmp_path, clip_norm):
    config = TrainConfig(max_steps=1, optimizer=SgdConfig(learning_rate=1.0), clip_norm=clip_norm)
    many = Bench(tmp_path / "many", replace(config, accumulate=5))
    one = Bench(tmp_path / "one", config, batches=Batches(sizes=(15,)))
    many.run()
    one.run()
    for ours, theirs in zip(many.model.parameters(), one.model.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_rest_of_an_epoch_makes_a_smaller_step(tmp_path):
    bench = Bench(tmp_path, replace(SHORT, max_epochs=1, accumulate=2))
    assert bench.run().progress.step == 3


def test_step_equals_torch_with_its_own_clipping(tmp_path):
    config = TrainConfig(max_steps=1, optimizer=SgdConfig(learning_rate=1.0), clip_norm=0.1)
    bench, reference = Bench(tmp_path, config), build_model()
    bench.run()
    batch = next(Batches().epoch(0))
    nn.functional.cross_entropy(reference(batch.inputs), batch.labels).backward()
    nn.utils.clip_grad_norm_(reference.parameters(), 0.1)
    torch.optim.SGD(reference.parameters(), lr=1.0).step()
    for ours, theirs in zip(bench.model.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_clipping_bounds_the_length_of_a_step(tmp_path):
    config = TrainConfig(max_steps=1, optimizer=SgdConfig(learning_rate=1.0), clip_norm=0.01)
    bench, before = Bench(tmp_path, config), build_model()
    bench.run()
    pairs = zip(bench.model.parameters(), before.parameters(), strict=True)
    length = math.sqrt(sum((ours - theirs).square().sum().item() for ours, theirs in pairs))
    assert length == pytest.approx(0.01, rel=1e-3)


def test_journal_holds_means_per_token(tmp_path):
    config = replace(SHORT, max_epochs=1, log_every=5, optimizer=SgdConfig(learning_rate=0.0))
    bench = Bench(tmp_path, config)
    bench.run()
    batches = list(Batches().epoch(0))
    inputs = torch.cat([batch.inputs for batch in batches])
    labels = torch.cat([batch.labels for batch in batches])
    expected = nn.functional.cross_entropy(build_model()(inputs), labels).item()
    assert bench.rows("train")[0]["loss"] == pytest.approx(expected, rel=1e-5)


def test_schedule_moves_the_learning_rate_of_all_groups(tmp_path):
    config = replace(SHORT, log_every=5, schedule=InverseTimeConfig())
    bench = Bench(tmp_path, config)
    bench.run()
    assert [row["learning_rate"] for row in bench.rows("train")] == [0.02, 0.01]
    assert {group["lr"] for group in bench.trainer._optimizer.param_groups} == {0.01}


def test_epochs_are_counted_from_one_in_the_journal(tmp_path):
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


def test_best_weights_are_kept_and_put_into_the_model(tmp_path):
    best = Bench(tmp_path / "best", replace(SHORT, max_epochs=2))
    best.run()
    bench = Bench(tmp_path / "long", replace(SHORT, max_epochs=4), values=(0.1, 0.9, 0.2, 0.3))
    summary = bench.run()
    assert (summary.progress.best, summary.progress.best_step) == (0.9, 10)
    assert_same_weights(
        read_weights(tmp_path / "long" / "model.safetensors"), best.present_weights()
    )
    assert_same_weights(bench.model.state_dict(), best.present_weights())


def test_weights_after_the_last_validation_get_one_too(tmp_path):
    bench = Bench(tmp_path, replace(SHORT, max_steps=7))
    bench.run()
    assert [row["step"] for row in bench.rows("valid")] == [5, 7]


def test_validation_that_finds_nan_is_never_best(tmp_path):
    summary = Bench(tmp_path, SHORT, values=(math.nan, 0.1)).run()
    assert summary.progress.best_step == 10


def test_validation_sees_evaluation_mode_without_gradients(tmp_path):
    seen = []
    bench = Bench(tmp_path, replace(SHORT, max_epochs=1))

    def validate():
        seen.append((bench.model.training, torch.is_grad_enabled()))
        return Validation(0.0)

    bench.trainer._measure = validate
    bench.run()
    assert seen == [(False, False)]


def test_validating_more_often_does_not_change_training(tmp_path):
    config = replace(SHORT, patience=0)
    often = Bench(tmp_path / "a", replace(config, validate_every=1), model=build_model(0.5))
    rarely = Bench(tmp_path / "b", config, model=build_model(0.5))
    for bench in (often, rarely):
        bench.trainer._measure = lambda: Validation(torch.rand(1).item())
        torch.manual_seed(1)
        bench.run()
    assert_same_weights(often.present_weights(), rarely.present_weights())


def test_average_is_taken_when_it_is_better(tmp_path):
    config = replace(SHORT, max_epochs=3, average_last=2)
    bench = Bench(tmp_path, config, values=(0.1, 0.2, 0.3, 0.9))
    summary = bench.run()
    paths = sorted((tmp_path / "averages").iterdir())
    last_two = [read_weights(path)["0.weight"] for path in paths]
    assert summary.progress.best == 0.9
    torch.testing.assert_close(bench.model[0].weight, (last_two[0] + last_two[1]) / 2)


def test_average_is_left_when_it_is_worse(tmp_path):
    config = replace(SHORT, max_epochs=3, average_last=2)
    bench = Bench(tmp_path, config, values=(0.1, 0.2, 0.3, 0.25))
    bench.run()
    assert_same_weights(bench.model.state_dict(), bench.present_weights())


def test_average_does_not_touch_the_state_to_resume_from(tmp_path):
    averaged = Bench(tmp_path / "a", replace(SHORT, average_last=2), values=(0.1, 0.2, 0.9))
    plain = Bench(tmp_path / "b", SHORT, values=(0.1, 0.2))
    averaged.run()
    plain.run()
    assert_same_weights(averaged.present_weights(), plain.present_weights())


def careful_bench(run, before_loss=None):
    """Everything that has a memory: dropout, Adam, a plateau after step 8, log lines, the best."""
    bench = Bench(run, CAREFUL, model=build_model(0.3), before_loss=before_loss)
    trainer = bench.trainer
    trainer._measure = lambda: Validation(-abs(trainer.progress.step - 8.0))
    torch.manual_seed(1)
    return bench


@pytest.mark.parametrize("stop_at", [1, 4, 7, 8, 12, 17])
def test_stopped_and_resumed_equals_never_stopped(tmp_path, stop_at):
    whole = careful_bench(tmp_path / "whole")
    whole.run()
    first = careful_bench(tmp_path / "parts", before_loss=interrupt_at(stop_at))
    assert first.run().stopped == "interrupted"
    second = careful_bench(tmp_path / "parts")
    second.trainer.resume()
    summary = second.run()
    assert_same_weights(second.present_weights(), whole.present_weights())
    assert_same_weights(second.model.state_dict(), whole.model.state_dict())
    for kind, names in (
        ("train", ("step", "loss", "gradient_norm", "learning_rate")),
        ("valid", ("step", "value", "is_best")),
    ):
        ours, theirs = (
            [[row[name] for name in names] for row in bench.rows(kind)] for bench in (second, whole)
        )
        assert ours == theirs
    assert replace(summary.progress, seconds=0) == replace(whole.trainer.progress, seconds=0)


def test_interrupt_while_accumulating_repeats_the_whole_step(tmp_path):
    config = replace(SHORT, accumulate=2)
    torch.manual_seed(1)
    whole = Bench(tmp_path / "whole", config, model=build_model(0.3))
    whole.run()
    torch.manual_seed(1)
    parts = tmp_path / "parts"
    Bench(parts, config, model=build_model(0.3), before_loss=interrupt_at(4)).run()
    second = Bench(parts, config, model=build_model(0.3))
    second.trainer.resume()
    second.run()
    assert_same_weights(second.present_weights(), whole.present_weights())


def build_normed_model():
    torch.manual_seed(7)
    return nn.Sequential(nn.Linear(WIDTH, 8), nn.BatchNorm1d(8), nn.Linear(8, NUM_CLASSES))


@pytest.mark.parametrize("stop_at", [1, 4, 7])
def test_interrupted_step_leaves_no_trace_in_running_statistics(tmp_path, stop_at):
    config, batches = replace(SHORT, accumulate=2), Batches(sizes=(2, 5, 3, 4))
    whole = Bench(tmp_path / "whole", config, model=build_normed_model(), batches=batches)
    whole.run()
    parts = tmp_path / "parts"
    interrupt = interrupt_at(stop_at)
    Bench(parts, config, model=build_normed_model(), batches=batches, before_loss=interrupt).run()
    second = Bench(parts, config, model=build_normed_model(), batches=batches)
    second.trainer.resume()
    second.run()
    assert "1.running_var" in second.present_weights()
    assert_same_weights(second.present_weights(), whole.present_weights())


def test_validation_that_was_interrupted_is_made_up_for(tmp_path):
    def refuse():
        raise KeyboardInterrupt

    first = Bench(tmp_path, SHORT)
    first.trainer._measure = refuse
    first.run()
    second = Bench(tmp_path, SHORT)
    second.trainer.resume()
    second.run()
    assert [row["step"] for row in second.rows("valid")] == [5, 10]


def test_batches_built_ahead_change_nothing(tmp_path, monkeypatch):
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


def test_journal_tells_how_long_training_waited_for_data(tmp_path):
    class SlowBatches(Batches):
        def epoch(self, number, skip=0):
            for batch in super().epoch(number, skip):
                time.sleep(0.05)
                yield batch

    quick, slow = Bench(tmp_path / "a", SHORT), Bench(tmp_path / "b", SHORT, batches=SlowBatches())
    quick.run()
    slow.run()
    assert all(0 <= row["waiting"] <= 1 for row in quick.rows("train") + slow.rows("train"))
    # Whatever else a busy machine is slow at, a good part of it was this.
    assert max(row["waiting"] for row in slow.rows("train")) > 0.1


def test_batch_that_cannot_be_built_ends_training_with_its_own_words(tmp_path):
    class BadBatches(Batches):
        def epoch(self, number, skip=0):
            yield from [*super().epoch(number, skip)][:2]
            raise DataError("the third batch is bad")

    with pytest.raises(DataError, match="the third batch is bad"):
        Bench(tmp_path, SHORT, batches=BadBatches()).run()


def test_resume_skips_what_the_epoch_has_used(tmp_path):
    Bench(tmp_path, SHORT, before_loss=interrupt_at(9)).run()
    bench = Bench(tmp_path, SHORT)
    bench.trainer.resume()
    bench.run()
    assert bench.batches.epochs == [(1, 3)]


def test_finished_run_goes_on_with_more_epochs(tmp_path):
    Bench(tmp_path, SHORT).run()
    bench = Bench(tmp_path, replace(SHORT, max_epochs=3))
    bench.trainer.resume()
    assert bench.run().progress.step == 15


def test_run_killed_after_its_last_save_leaves_no_doubled_rows(tmp_path):
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


def test_sigterm_stops_like_ctrl_c(tmp_path):
    def terminate(step):
        if step == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    summary = Bench(tmp_path, SHORT, before_loss=terminate).run()
    assert (summary.stopped, summary.progress.step) == ("interrupted", 2)


def test_end_is_written_to_the_journal(tmp_path):
    bench = Bench(tmp_path, SHORT)
    bench.run()
    assert [row["reason"] for row in bench.rows("stop")] == ["epochs"]


def test_fresh_run_clears_what_an_earlier_one_left(tmp_path):
    Bench(tmp_path, replace(SHORT, average_last=3)).run()
    bench = Bench(tmp_path, replace(SHORT, max_steps=2), before_loss=interrupt_at(2))
    bench.run()
    assert [row["step"] for row in bench.rows("stop")] == [1]
    assert list((tmp_path / "averages").iterdir()) == []


def broken_from(number, factor):
    def loss(bench, batch):
        good = Bench.loss(bench, batch)
        return replace(good, total=good.total * factor) if bench.num_losses >= number else good

    return loss


@pytest.mark.parametrize(("factor", "name"), [(math.nan, "NaN"), (math.inf, "infinite")])
def test_loss_that_explodes_is_reported_with_what_to_do(tmp_path, factor, name):
    bench = Bench(tmp_path, SHORT)
    bench.trainer._loss = lambda batch: broken_from(5, factor)(bench, batch)
    message = (
        rf"The loss became {name} between steps 4 and 5. Lower `train.optimizer.learning_rate` "
        r"\(now 0.02\), .* or set `train.clip_norm` \(now 1\).* unharmed."
    )
    with pytest.raises(RegardError, match=message):
        bench.run()


def test_gradient_that_explodes_is_reported_before_the_loss(tmp_path):
    bench = Bench(tmp_path, replace(SHORT, log_every=1))

    def loss(batch):
        good = Bench.loss(bench, batch)
        hooked = good.total.clone()
        hooked.register_hook(lambda gradient: gradient * math.nan)
        return Loss(hooked, good.nll, good.count)

    bench.trainer._loss = loss
    with pytest.raises(RegardError, match="The gradient norm became NaN between steps 1 and 1"):
        bench.run()


def test_explosion_leaves_the_last_good_state(tmp_path):
    bench = Bench(tmp_path, replace(SHORT, log_every=100))
    bench.trainer._loss = lambda batch: broken_from(8, math.nan)(bench, batch)
    with pytest.raises(RegardError, match="NaN"):
        bench.run()
    assert all(tensor.isfinite().all() for tensor in bench.present_weights().values())
    assert [row["step"] for row in bench.rows("valid")] == [5]


def test_resume_without_a_state_says_so(tmp_path):
    with pytest.raises(CheckpointError, match="has no state to resume from"):
        Bench(tmp_path, SHORT).trainer.resume()


def test_data_without_a_batch_is_refused(tmp_path):
    with pytest.raises(DataError, match="The training data has no batch. Is the file empty"):
        Bench(tmp_path, SHORT, batches=Batches(sizes=()))


def test_settings_survive_the_round_trip():
    config = replace(CAREFUL, optimizer=SgdConfig(momentum=0.5))
    assert from_dict(TrainConfig, to_dict(config)) == config


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"max_steps": -1}, "`max_steps` must be at least 0, but is -1"),
        ({"max_epochs": -1}, "`max_epochs` must be at least 0"),
        ({"max_minutes": -1.0}, "`max_minutes` must be at least 0"),
        ({"clip_norm": -1.0}, "`clip_norm` must be at least 0"),
        ({"accumulate": 0}, "`accumulate` must be at least 1"),
        ({"log_every": 0}, "`log_every` must be at least 1"),
        ({"validate_every": -1}, "`validate_every` must be at least 0"),
        ({"patience": -1}, "`patience` must be at least 0"),
        ({"average_last": -1}, "`average_last` must be at least 0"),
        ({"label_smoothing": 1.5}, "`label_smoothing` must be between 0 and 1"),
        ({"teacher_forcing": -0.5}, "`teacher_forcing` must be between 0 and 1"),
        ({"max_epochs": 0, "patience": 0}, "are all 0, so training would never end"),
    ],
)
def test_a_wrong_setting_is_named(values, message):
    with pytest.raises(ConfigError, match=message):
        TrainConfig(**values)


class Layered(nn.Module):
    """Two blocks and a head."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.first = nn.Linear(WIDTH, 8)
        self.blocks = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])
        self.output = nn.Linear(8, NUM_CLASSES)

    def forward(self, inputs):
        states = self.first(inputs)
        for block in self.blocks:
            states = torch.relu(block(states))
        return self.output(states)


def layered_bench(run, max_steps, **settings):
    config = TrainConfig(max_steps=max_steps, optimizer=AdamConfig(learning_rate=0.01), **settings)
    return Bench(run, config, model=Layered())


def test_step_of_a_block_is_as_long_as_its_rate(tmp_path):
    settings = {"optimizer": SgdConfig(learning_rate=0.5), "max_steps": 1, "clip_norm": 0}
    even, graded = (
        Bench(tmp_path / f"{decay}", TrainConfig(layer_decay=decay, **settings), model=Layered())
        for decay in (1.0, 0.5)
    )
    start = {name: weight.clone() for name, weight in Layered().named_parameters()}
    for bench in (even, graded):
        bench.run()
    moves = [
        {name: weight - start[name] for name, weight in bench.model.named_parameters()}
        for bench in (even, graded)
    ]
    for name, share in (("first", 0.25), ("blocks.0", 0.5), ("blocks.1", 1.0), ("output", 1.0)):
        torch.testing.assert_close(
            moves[1][f"{name}.weight"], share * moves[0][f"{name}.weight"], rtol=1e-4, atol=1e-6
        )


def test_frozen_weights_stay_and_others_move(tmp_path):
    bench = layered_bench(tmp_path, 3, freeze=("first", "blocks.0"))
    bench.run()
    for name, weight in Layered().named_parameters():
        is_same = torch.equal(weight, dict(bench.model.named_parameters())[name])
        assert is_same == name.startswith(("first", "blocks.0"))


def test_resumed_equals_never_stopped_with_layer_rates_and_frozen_weights(tmp_path):
    settings = {"layer_decay": 0.7, "freeze": ("blocks.0.bias",)}
    whole = layered_bench(tmp_path / "whole", 8, **settings)
    whole.run()
    layered_bench(tmp_path / "parts", 4, **settings).run()
    rest = layered_bench(tmp_path / "parts", 8, **settings)
    rest.trainer.resume()
    rest.run()
    assert_same_weights(rest.present_weights(), whole.present_weights())
