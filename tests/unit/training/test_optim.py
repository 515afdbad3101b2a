import pytest
import torch
from torch import nn

from regard.core.config import from_dict
from regard.core.errors import ConfigError
from regard.training.optim import (
    OPTIMIZERS,
    AdagradConfig,
    AdamConfig,
    AdamwConfig,
    RmspropConfig,
    SgdConfig,
    build_optimizer,
)

PAIRS = [
    (SgdConfig(), lambda p: torch.optim.SGD(p, lr=0.1)),
    (
        SgdConfig(momentum=0.9, is_nesterov=True, weight_decay=0.1),
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    ),
    (AdagradConfig(weight_decay=0.1), lambda p: torch.optim.Adagrad(p, weight_decay=0.1)),
    (
        RmspropConfig(alpha=0.9, momentum=0.5),
        lambda p: torch.optim.RMSprop(p, lr=0.001, alpha=0.9, momentum=0.5),
    ),
    (
        AdamConfig(betas=(0.9, 0.98), epsilon=1e-9, weight_decay=0.1),
        lambda p: torch.optim.Adam(p, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.1),
    ),
    (AdamwConfig(), lambda p: torch.optim.AdamW(p, weight_decay=0.01)),
]


def walk(model, optimizer):
    for scale in (1.0, -0.5, 2.0):
        optimizer.zero_grad()
        (scale * model(torch.ones(2, 3)).square()).sum().backward()
        optimizer.step()
    return model.weight.detach()


@pytest.mark.parametrize(("config", "build"), PAIRS, ids=lambda value: getattr(value, "kind", ""))
def test_steps_equal_those_of_torch(config, build):
    torch.manual_seed(0)
    ours, theirs = nn.Linear(3, 2, bias=False), nn.Linear(3, 2, bias=False)
    theirs.load_state_dict(ours.state_dict())
    expected = walk(theirs, build(theirs.parameters()))
    torch.testing.assert_close(walk(ours, build_optimizer(config, ours)), expected)


def test_every_optimizer_is_compared_with_torch():
    assert {type(config) for config, _ in PAIRS} == set(OPTIMIZERS)


def test_matrices_decay_and_vectors_do_not():
    model = nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2))
    decaying, free = build_optimizer(AdamwConfig(weight_decay=0.1), model).param_groups
    assert decaying["weight_decay"] == 0.1 and free["weight_decay"] == 0.0
    assert {p.dim() for p in decaying["params"]} == {2}
    assert {p.dim() for p in free["params"]} == {1}


def test_frozen_parameters_are_left_out():
    model = nn.Linear(3, 2)
    model.weight.requires_grad_(False)
    (group,) = build_optimizer(SgdConfig(), model).param_groups
    assert group["params"] == [model.bias]


def test_fused_road_is_taken_on_the_processor():
    assert build_optimizer(AdamConfig(), nn.Linear(2, 2)).param_groups[0]["fused"]


@pytest.mark.parametrize(
    ("cls", "values", "message"),
    [
        (SgdConfig, {"learning_rate": -1}, "`learning_rate` must be at least 0, but is -1"),
        (SgdConfig, {"weight_decay": -1}, "`weight_decay` must be at least 0"),
        (SgdConfig, {"momentum": 2}, "`momentum` must be between 0 and 1, but is 2"),
        (SgdConfig, {"is_nesterov": True}, "`momentum` must be above 0 when `is_nesterov`"),
        (AdagradConfig, {"epsilon": -1}, "`epsilon` must be at least 0"),
        (RmspropConfig, {"alpha": 2}, "`alpha` must be between 0 and 1"),
        (AdamConfig, {"betas": [0.9, 1.0]}, r"`betas\[1\]` must be at least 0 and below 1"),
        (AdamwConfig, {"betas": [-0.1, 0.9]}, r"`betas\[0\]` must be at least 0 and below 1"),
    ],
)
def test_a_wrong_setting_is_named(cls, values, message):
    with pytest.raises(ConfigError, match=message):
        from_dict(cls, values)
