import pytest
import torch
from torch import nn

from regard.core.config import from_dict
from regard.core.errors import ConfigError
from regard.training.optimizers import (
    OPTIMIZERS,
    AdagradConfig,
    AdamConfig,
    AdamwConfig,
    MuonConfig,
    RmspropConfig,
    SgdConfig,
    build_optimizer,
    freeze,
    layer_scales,
    set_training,
)
from regard.training.settings import TrainConfig

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


def train(model, optimizer):
    for scale in (1.0, -0.5, 2.0):
        optimizer.zero_grad()
        (scale * model(torch.ones(2, 3)).square()).sum().backward()
        optimizer.step()
    return model.weight.detach()


@pytest.mark.parametrize(("config", "build"), PAIRS, ids=lambda value: getattr(value, "kind", ""))
def test_updates_equal_torch_optimizers(config, build):
    torch.manual_seed(0)
    ours, theirs = nn.Linear(3, 2, bias=False), nn.Linear(3, 2, bias=False)
    theirs.load_state_dict(ours.state_dict())
    expected = train(theirs, build(theirs.parameters()))
    torch.testing.assert_close(train(ours, build_optimizer(config, ours)), expected)


def test_every_optimizer_is_compared_with_torch():
    # Muon is tested in test_muon.py.
    assert {*(type(config) for config, _ in PAIRS), MuonConfig} == set(OPTIMIZERS)


def test_weight_decay_applies_to_matrices_only():
    model = nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2))
    decaying, free = build_optimizer(AdamwConfig(weight_decay=0.1), model).param_groups
    assert decaying["weight_decay"] == 0.1 and free["weight_decay"] == 0.0
    assert {p.dim() for p in decaying["params"]} == {2}
    assert {p.dim() for p in free["params"]} == {1}


def test_frozen_parameters_are_not_optimized():
    model = nn.Linear(3, 2)
    model.weight.requires_grad_(False)
    (group,) = build_optimizer(SgdConfig(), model).param_groups
    assert group["params"] == [model.bias]


def test_fused_implementation_is_used_on_the_cpu():
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
        (MuonConfig, {"momentum": 1.0}, "`momentum` must be between 0 and 0.999, but is 1"),
        (AdamwConfig, {"betas": [-0.1, 0.9]}, r"`betas\[0\]` must be at least 0 and below 1"),
    ],
)
def test_error_names_the_invalid_setting(cls, values, message):
    with pytest.raises(ConfigError, match=message):
        from_dict(cls, values)


class Stack(nn.Module):
    """Embeddings, three blocks, a norm and a head, with the usual names."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Module()
        self.encoder.embedding = nn.Embedding(5, 4)
        self.encoder.blocks = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.encoder.norm = nn.LayerNorm(4)
        self.output = nn.Linear(4, 2)


def test_learning_rates_decrease_from_the_head_to_the_embeddings():
    assert layer_scales(Stack(), 0.5) == {
        "encoder.embedding.weight": 0.125,
        "encoder.blocks.0.weight": 0.25,
        "encoder.blocks.0.bias": 0.25,
        "encoder.blocks.1.weight": 0.5,
        "encoder.blocks.1.bias": 0.5,
        "encoder.blocks.2.weight": 1.0,
        "encoder.blocks.2.bias": 1.0,
        "encoder.norm.weight": 1.0,
        "encoder.norm.bias": 1.0,
        "output.weight": 1.0,
        "output.bias": 1.0,
    }


def test_every_parameter_is_in_the_group_of_its_learning_rate():
    model = Stack()
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    scales = layer_scales(model, 0.9)
    groups = build_optimizer(AdamwConfig(), model, layer_decay=0.9).param_groups
    found = {names[id(p)]: group["scale"] for group in groups for p in group["params"]}
    assert found == scales
    assert sum(len(group["params"]) for group in groups) == len(scales)


def test_without_layer_decay_there_are_two_groups():
    groups = build_optimizer(AdamConfig(), Stack()).param_groups
    assert [len(group["params"]) for group in groups] == [5, 6]
    assert {group["scale"] for group in groups} == {1.0}


def test_layer_decay_without_blocks_is_warned_about(caplog):
    assert set(layer_scales(nn.Linear(2, 2), 0.5).values()) == {1.0}
    assert "`layer_decay` has no effect" in caplog.text


def test_frozen_parameters_need_no_gradient_and_are_in_no_group():
    model = Stack()
    freeze(model, ["encoder.blocks.1", "encoder.embedding"])
    frozen = {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
    assert frozen == {
        "encoder.blocks.1.weight",
        "encoder.blocks.1.bias",
        "encoder.embedding.weight",
    }
    groups = build_optimizer(AdamConfig(), model).param_groups
    assert sum(len(group["params"]) for group in groups) == 11 - 3


def test_freeze_compares_whole_parts_of_names():
    model = nn.Module()
    model.blocks = nn.ModuleList(nn.Linear(1, 1) for _ in range(11))
    freeze(model, ["blocks.1"])
    assert model.blocks[10].weight.requires_grad
    assert not model.blocks[1].weight.requires_grad


def test_unknown_prefix_is_refused_with_the_choices():
    match = "'encodr' matches none. Did you mean 'encoder'. Choices: encoder, output."
    with pytest.raises(ConfigError, match=match):
        freeze(Stack(), ["encodr"])


def test_freezing_everything_is_refused():
    with pytest.raises(ConfigError, match="`freeze` must leave parameters to train"):
        freeze(Stack(), ["encoder", "output"])


@pytest.mark.parametrize("decay", [0.0, 1.5])
def test_layer_decay_must_be_between_0_and_1(decay):
    with pytest.raises(ConfigError, match="`layer_decay` must be above 0 and at most 1"):
        TrainConfig(layer_decay=decay)


def test_frozen_batch_norms_keep_their_statistics():
    model = nn.ModuleDict({"image": nn.BatchNorm1d(2), "head": nn.BatchNorm1d(2)})
    freeze(model, ["image"])
    set_training(model)
    before = model["image"].running_mean.clone()
    for norm in model.values():
        norm(torch.randn(8, 2) + 3)
    assert torch.equal(model["image"].running_mean, before)
    assert not torch.equal(model["head"].running_mean, before)
    assert model.training and model["head"].training
