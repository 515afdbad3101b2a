"""Skipped updates change nothing, for every optimiser, decided on the host or on the device."""

import copy

import pytest
import torch
from torch import nn

from regard.training.optimizers import (
    OPTIMIZERS,
    MuonConfig,
    RmspropConfig,
    SgdConfig,
    build_optimizer,
)
from regard.training.updates.skippable import DeviceUpdates, Updates

CONFIGS = [
    *(kind(learning_rate=0.01, weight_decay=0.1) for kind in OPTIMIZERS),
    SgdConfig(learning_rate=0.01, momentum=0.9, is_nesterov=True),
    RmspropConfig(momentum=0.9),
    MuonConfig(momentum=0.3),
]
GOOD, BAD = torch.tensor(False), torch.tensor(True)


def build_model():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 5), nn.Linear(5, 2))


class Bench:
    """A model, its optimiser and updates of one kind."""

    def __init__(self, kind, config):
        self.model = build_model()
        self.optimizer = build_optimizer(config, self.model)
        self.updates = kind(self.optimizer, self.model)

    def step(self, *, seed, is_bad=False):
        self.updates.begin()
        self.optimizer.zero_grad()
        inputs = torch.randn(8, 4, generator=torch.Generator().manual_seed(seed))
        inputs[0, 0] += float("nan") if is_bad else 0
        self.model(inputs).square().mean().backward()
        self.updates.step(BAD if is_bad else GOOD)

    def tensors(self):
        states = self.optimizer.state_dict()["state"]
        moments = {
            f"{number}.{name}": value
            for number, values in states.items()
            for name, value in values.items()
            # Optimisers that are not fused count all steps, without any effect on updates.
            if isinstance(value, torch.Tensor) and (value.dim() or self.is_counted)
        }
        weights = {
            name: value
            for name, value in self.model.state_dict().items()
            if value.is_floating_point()
        }
        return copy.deepcopy({**weights, **moments})

    @property
    def is_counted(self):
        return type(self.updates) is Updates or self.optimizer.defaults.get("fused")


def assert_equal(ours, theirs):
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert torch.equal(tensor, theirs[name]), name


@pytest.mark.parametrize("kind", [Updates, DeviceUpdates])
@pytest.mark.parametrize("config", CONFIGS, ids=repr)
def test_training_with_skipped_updates_equals_training_without_them(kind, config):
    ours, plain = Bench(kind, config), Bench(Updates, config)
    for seed in range(6):
        ours.step(seed=100 + seed, is_bad=True)
        ours.step(seed=seed)
        plain.step(seed=seed)
    found, expected = ours.tensors(), plain.tensors()
    assert all(tensor.isfinite().all() for tensor in found.values())
    assert_equal(found, {name: expected[name] for name in found})


@pytest.mark.parametrize("kind", [Updates, DeviceUpdates])
@pytest.mark.parametrize("config", CONFIGS, ids=repr)
def test_skipped_update_changes_nothing(kind, config):
    bench = Bench(kind, config)
    bench.step(seed=0)
    before = bench.tensors()
    bench.step(seed=1, is_bad=True)
    assert_equal(bench.tensors(), before)


@pytest.mark.parametrize("config", CONFIGS, ids=repr)
def test_device_decides_without_the_host(config):
    bench = Bench(DeviceUpdates, config)
    bench.step(seed=0)
    decision = BAD.clone()

    def refuse(*_):
        raise AssertionError("the host waits for the decision")

    class Decision(torch.Tensor):
        __bool__ = __float__ = item = tolist = refuse

    bench.updates.step(decision.as_subclass(Decision))
