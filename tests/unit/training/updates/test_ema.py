from dataclasses import replace

import pytest
import torch
from torch import nn

from regard.training.checkpoint import read_weights
from regard.training.updates.ema import MovingAverage
from regard.training.validation import Validation
from tests.training_bench import (
    SHORT,
    Bench,
    assert_same_weights,
    build_model,
    interrupt_at,
)

AVERAGED = replace(SHORT, ema_decay=0.9)


def copy_weights(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def weights_after_each_step(tmp_path, config):
    """Train and return the weights before the first step and after each."""
    found = []
    bench = Bench(tmp_path, config, before_loss=lambda step: found.append(copy_weights(model)))
    model = bench.model
    bench.run()
    return [*found, bench.present_weights()]


def test_average_follows_its_formula(tmp_path):
    """The average in closed form, a sum over the weights of all steps, is the one saved."""
    history = weights_after_each_step(tmp_path, AVERAGED)
    decays = [min(0.9, (1 + step) / (10 + step)) for step in range(1, len(history))]
    expected = torch.zeros_like(history[0]["0.weight"])
    share = 1.0
    for weights, decay in zip(reversed(history[1:]), reversed(decays), strict=True):
        expected += share * (1 - decay) * weights["0.weight"]
        share *= decay
    expected += share * history[0]["0.weight"]
    saved = read_weights(tmp_path / "resume" / "ema.safetensors")
    torch.testing.assert_close(saved["0.weight"], expected)


def test_average_equals_that_of_torch_without_warm_up():
    model = nn.Linear(3, 2)
    reference = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.5)
    )
    reference.update_parameters(model)  # the first call copies the weights
    average = MovingAverage(model, 0.5)
    for step in range(100, 105):  # the decay is 0.5 from step 8 on
        for parameter in model.parameters():
            parameter.data.normal_()
        reference.update_parameters(model)
        average.update(step)
    for name, parameter in reference.module.named_parameters():
        torch.testing.assert_close(average.state()[name], parameter.detach())


def test_validation_and_best_weights_are_averages(tmp_path):
    bench = Bench(tmp_path, replace(AVERAGED, max_epochs=1))
    seen = []

    def validate():
        seen.append(copy_weights(bench.model))
        return Validation(1.0)

    bench.trainer._validation = validate
    bench.run()
    assert_same_weights(seen[0], read_weights(tmp_path / "resume" / "ema.safetensors"))
    assert_same_weights(seen[0], read_weights(tmp_path / "model.safetensors"))
    assert_same_weights(seen[0], bench.model.state_dict())


def test_averaging_does_not_change_training(tmp_path):
    averaged, plain = Bench(tmp_path / "a", AVERAGED), Bench(tmp_path / "b", SHORT)
    averaged.run()
    plain.run()
    assert_same_weights(averaged.present_weights(), plain.present_weights())
    assert not (tmp_path / "b" / "resume" / "ema.safetensors").exists()


@pytest.mark.parametrize("stop_at", [1, 4, 6, 9])
def test_interrupted_and_resumed_equals_uninterrupted(tmp_path, stop_at):
    def bench(folder, before_loss=None):
        torch.manual_seed(1)
        model = build_model(0.3)
        return Bench(tmp_path / folder, AVERAGED, model=model, before_loss=before_loss)

    whole = bench("whole")
    whole.run()
    bench("parts", interrupt_at(stop_at)).run()
    second = bench("parts")
    second.trainer.resume()
    second.run()
    assert_same_weights(second.present_weights(), whole.present_weights())
    for name in ("model.safetensors", "resume/ema.safetensors"):
        assert_same_weights(
            read_weights(tmp_path / "parts" / name), read_weights(tmp_path / "whole" / name)
        )


def test_interrupted_validation_saves_the_trained_weights(tmp_path):
    def interrupt():
        raise KeyboardInterrupt

    plain = Bench(tmp_path / "plain", replace(SHORT, max_epochs=1))
    plain.run()
    bench = Bench(tmp_path / "averaged", AVERAGED)
    bench.trainer._validation = interrupt
    bench.run()
    assert_same_weights(bench.present_weights(), plain.present_weights())
    averages = read_weights(tmp_path / "averaged" / "resume" / "ema.safetensors")
    assert_same_weights(read_weights(tmp_path / "averaged" / "model.safetensors"), averages)


def test_run_resumed_with_averaging_starts_from_its_weights(tmp_path):
    Bench(tmp_path, replace(SHORT, max_epochs=1)).run()
    bench = Bench(tmp_path, AVERAGED)
    bench.trainer.resume()
    assert_same_weights(bench.trainer._ema.state(), bench.present_weights())


def test_last_checkpoints_are_averaged_without_decay(tmp_path):
    """Both averages are candidates: `average_last` uses the weights, not their moving average."""
    averaged = Bench(tmp_path / "a", replace(AVERAGED, average_last=2), values=(0.1, 0.2, 0.9))
    plain = Bench(tmp_path / "b", replace(SHORT, average_last=2), values=(0.1, 0.2, 0.9))
    averaged.run()
    plain.run()
    assert_same_weights(averaged.model.state_dict(), plain.model.state_dict())


def test_buffers_and_frozen_parameters_are_those_of_the_model():
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    model[0].bias.requires_grad_(False)
    average = MovingAverage(model, 0.5)
    assert set(average.state()) == {"0.weight", "1.weight", "1.bias"}
    model(torch.randn(4, 3))
    statistics = model[1].running_mean.clone()
    average.apply()
    assert torch.equal(model[1].running_mean, statistics)


def test_remove_restores_the_weights_and_may_be_called_twice():
    model = nn.Linear(3, 2)
    average = MovingAverage(model, 0.5)
    model.weight.data += 1
    before = copy_weights(model)
    average.apply()
    assert not torch.equal(model.weight, before["weight"])
    average.remove()
    average.remove()
    assert_same_weights(model.state_dict(), before)
