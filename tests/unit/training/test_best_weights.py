import math
from dataclasses import replace

import torch

from regard.training.checkpoint import read_weights
from regard.training.validation import Validation
from tests.training_bench import SHORT, Bench, assert_same_weights, build_model


def test_best_weights_are_saved_and_loaded_into_the_model(tmp_path):
    best = Bench(tmp_path / "best", replace(SHORT, max_epochs=2))
    best.run()
    bench = Bench(tmp_path / "long", replace(SHORT, max_epochs=4), values=(0.1, 0.9, 0.2, 0.3))
    summary = bench.run()
    assert (summary.progress.best, summary.progress.best_step) == (0.9, 10)
    assert_same_weights(
        read_weights(tmp_path / "long" / "model.safetensors"), best.present_weights()
    )
    assert_same_weights(bench.model.state_dict(), best.present_weights())


def test_last_weights_are_validated_too(tmp_path):
    bench = Bench(tmp_path, replace(SHORT, max_steps=7))
    bench.run()
    assert [row["step"] for row in bench.rows("valid")] == [5, 7]


def test_nan_validation_is_never_best(tmp_path):
    summary = Bench(tmp_path, SHORT, values=(math.nan, 0.1)).run()
    assert summary.progress.best_step == 10


def test_lower_loss_is_best_among_equal_values(tmp_path):
    bench = Bench(tmp_path, replace(SHORT, max_epochs=4, patience=3))
    validations = iter([Validation(0.0, {"loss": loss}) for loss in (3.0, 2.0, 2.5, 2.2)])
    bench.trainer._validation = lambda: next(validations)
    summary = bench.run()
    assert (summary.progress.best_step, summary.progress.best_loss) == (10, 2.0)
    assert summary.stopped == "patience"  # equal values are no improvement


def test_validation_runs_in_evaluation_mode_without_gradients(tmp_path):
    seen = []
    bench = Bench(tmp_path, replace(SHORT, max_epochs=1))

    def validate():
        seen.append((bench.model.training, torch.is_grad_enabled()))
        return Validation(0.0)

    bench.trainer._validation = validate
    bench.run()
    assert seen == [(False, False)]


def test_validating_more_often_does_not_change_training(tmp_path):
    config = replace(SHORT, patience=0)
    often = Bench(tmp_path / "a", replace(config, validate_every=1), model=build_model(0.5))
    rarely = Bench(tmp_path / "b", config, model=build_model(0.5))
    for bench in (often, rarely):
        bench.trainer._validation = lambda: Validation(torch.rand(1).item())
        torch.manual_seed(1)
        bench.run()
    assert_same_weights(often.present_weights(), rarely.present_weights())


def test_averaged_weights_are_used_if_better(tmp_path):
    config = replace(SHORT, max_epochs=3, average_last=2)
    bench = Bench(tmp_path, config, values=(0.1, 0.2, 0.3, 0.9))
    summary = bench.run()
    paths = sorted((tmp_path / "averages").glob("*.safetensors"))
    last_two = [read_weights(path)["0.weight"] for path in paths]
    assert summary.progress.best == 0.9
    torch.testing.assert_close(bench.model[0].weight, (last_two[0] + last_two[1]) / 2)


def test_averaged_weights_are_discarded_if_worse(tmp_path):
    config = replace(SHORT, max_epochs=3, average_last=2)
    bench = Bench(tmp_path, config, values=(0.1, 0.2, 0.3, 0.25))
    bench.run()
    assert_same_weights(bench.model.state_dict(), bench.present_weights())


def test_averaging_does_not_change_the_resume_state(tmp_path):
    averaged = Bench(tmp_path / "a", replace(SHORT, average_last=2), values=(0.1, 0.2, 0.9))
    plain = Bench(tmp_path / "b", SHORT, values=(0.1, 0.2))
    averaged.run()
    plain.run()
    assert_same_weights(averaged.present_weights(), plain.present_weights())
