import shutil
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from regard.core.errors import CheckpointError
from regard.training.checkpoint import load_training, save_training
from regard.training.optimizers import (
    OPTIMIZERS,
    AdamConfig,
    MuonConfig,
    RmspropConfig,
    SgdConfig,
    build_optimizer,
    freeze,
)


@pytest.fixture(autouse=True)
def logged(caplog):
    """Capture notices."""
    caplog.set_level("INFO", logger="regard")


CONFIGS = [*OPTIMIZERS, lambda: SgdConfig(momentum=0.9), lambda: RmspropConfig(momentum=0.9)]


class Encoder(nn.Module):
    """Layers of different sizes, some in a stack of blocks."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(7, 3)
        self.blocks = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])


class Model(nn.Module):
    """An encoder and an output layer."""

    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.output = nn.Linear(3, 5)

    def forward(self, tokens):
        states = self.encoder.embedding(tokens)
        for block in self.encoder.blocks:
            states = states + block(states).tanh()
        return self.output(states)


def step(model, optimizer, num_steps=1):
    for _ in range(num_steps):
        optimizer.zero_grad()
        model(torch.tensor([0, 3, 6])).square().sum().backward()
        optimizer.step()


def build(config, *, frozen=(), layer_decay=1.0):
    torch.manual_seed(0)
    model = Model()
    freeze(model, frozen)
    return model, build_optimizer(config, model, layer_decay=layer_decay)


def saved_run(folder, config=None, **settings):
    model, optimizer = build(config or AdamConfig(), **settings)
    step(model, optimizer, 2)
    save_training(folder, model, optimizer, state={})
    return model, optimizer


def named(model, optimizer):
    """State of the optimiser by parameter name."""
    return {name: optimizer.state[p] for name, p in model.named_parameters() if p.requires_grad}


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize(
    "changes",
    [{"frozen": ["encoder"]}, {"frozen": ["output"]}, {"layer_decay": 0.5}, {}],
    ids=["encoder-frozen", "output-frozen", "layer-decay", "unchanged"],
)
def test_state_follows_the_name_of_its_parameter(tmp_path, config, changes):
    before = named(*saved_run(tmp_path, config()))
    model, optimizer = build(config(), **changes)
    load_training(tmp_path, model, optimizer)
    after = named(model, optimizer)
    assert after.keys() <= before.keys()
    for name, values in after.items():
        assert values.keys() == before[name].keys()
        for key, value in values.items():
            assert value is None or torch.equal(value, before[name][key])
    step(model, optimizer)
    assert all(parameter.isfinite().all() for parameter in model.parameters())


@pytest.mark.parametrize("config", OPTIMIZERS)
def test_parameters_that_were_frozen_start_without_state(tmp_path, caplog, config):
    saved_run(tmp_path, config(), frozen=["encoder.embedding"])
    model, optimizer = build(config())
    load_training(tmp_path, model, optimizer)
    other, fresh = build(config())
    step(model, optimizer), step(other, fresh)
    if config is not SgdConfig:  # has no state without momentum
        assert (
            "for 1 of 7 parameters, which was not saved: encoder.embedding.weight." in caplog.text
        )
    name = "encoder.embedding.weight"
    ours, theirs = named(model, optimizer)[name], named(other, fresh)[name]
    assert ours.get("step") == theirs.get("step")


def test_momentum_of_a_changed_setting_starts_without_state(tmp_path, caplog):
    saved_run(tmp_path, RmspropConfig())
    model, optimizer = build(RmspropConfig(momentum=0.9))
    load_training(tmp_path, model, optimizer)
    step(model, optimizer)
    assert "Resuming without optimiser state for 7 of 7 parameters" in caplog.text


def change_tensors(folder, change):
    """Change the file of the training state, without checksums."""
    path = folder / "resume" / "training.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path, {"version": "2"})
    (folder / "resume" / "checksums.json").unlink()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("exp_avg", torch.zeros(1), r"is 1 of float32 but must be 5 x 3 of float32"),
        ("exp_avg", torch.zeros(10**4), r"is 10000 of float32 but must be 5 x 3"),
        (
            "exp_avg_sq",
            torch.zeros(5, 3).double(),
            "is 5 x 3 of float64 but must be 5 x 3 of float",
        ),
        ("step", torch.zeros(3), "is 3 of float32 but must be a scalar of float32"),
        (
            "step",
            torch.zeros((), dtype=torch.int64),
            "is a scalar of int64 but must be a scalar of",
        ),
    ],
)
def test_state_of_another_shape_or_type_is_refused(tmp_path, key, value, message):
    saved_run(tmp_path)
    change_tensors(tmp_path, lambda tensors: tensors.update({f"state.output.weight.{key}": value}))
    model, optimizer = build(AdamConfig())
    before = model.output.weight.clone()
    with pytest.raises(CheckpointError, match=f"{key} of output.weight {message}"):
        load_training(tmp_path, model, optimizer)
    assert torch.equal(model.output.weight, before) and not optimizer.state


def test_state_of_an_unknown_parameter_is_refused(tmp_path):
    saved_run(tmp_path)
    change_tensors(tmp_path, lambda tensors: tensors.update({"state.x.y.exp_avg": torch.zeros(1)}))
    with pytest.raises(CheckpointError, match=r"does not fit the optimiser: x\.y is unexpected"):
        load_training(tmp_path, *build(AdamConfig()))


def test_incomplete_state_starts_fresh(tmp_path, caplog):
    saved_run(tmp_path)
    change_tensors(tmp_path, lambda tensors: tensors.pop("state.output.weight.exp_avg"))
    model, optimizer = build(AdamConfig())
    load_training(tmp_path, model, optimizer)
    assert model.output.weight not in optimizer.state
    step(model, optimizer)
    assert "for 1 of 7 parameters, which was not saved: output.weight." in caplog.text


def number_state(folder, model, optimizer):
    """Rewrite a training state as earlier versions did: by the number of the parameter."""
    path = folder / "resume" / "training.safetensors"
    names = {parameter: name for name, parameter in model.named_parameters()}
    order = [names[p] for group in optimizer.param_groups for p in group["params"]]
    tensors = {
        name
        if name.startswith("rng.")
        else f"state.{order.index(name[6:].rpartition('.')[0])}.{name.rpartition('.')[2]}": tensor
        for name, tensor in load_file(path).items()
    }
    save_file(tensors, path, {"format": "regard", "version": "1"})
    (folder / "resume" / "checksums.json").unlink()


@pytest.mark.parametrize("config", CONFIGS)
def test_state_of_an_earlier_version_is_restored(tmp_path, config):
    model, optimizer = saved_run(tmp_path, config())
    number_state(tmp_path, model, optimizer)
    other, restored = build(config())
    load_training(tmp_path, other, restored)
    step(model, optimizer), step(other, restored)
    for ours, theirs in zip(other.parameters(), model.parameters(), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"frozen": ["encoder"]},
            r"state of 7, but 2 are trained\. Resume with the `train\.freeze`",
        ),
        ({"layer_decay": 0.5}, "does not fit the optimiser: exp_avg of "),
    ],
)
def test_changed_parameters_of_an_earlier_version_are_refused(tmp_path, changes, message):
    number_state(tmp_path, *saved_run(tmp_path))
    with pytest.raises(CheckpointError, match=message):
        load_training(tmp_path, *build(AdamConfig(), **changes))


def test_loading_twice_gives_the_same_state(tmp_path):
    """The first state may be that of the optimiser itself, as of Adagrad before a step."""
    before = named(*saved_run(tmp_path, MuonConfig()))
    model, optimizer = build(replace(MuonConfig(), learning_rate=0.5))
    for _ in range(2):
        load_training(tmp_path, model, optimizer)
        step(model, optimizer)
    load_training(shutil.copytree(tmp_path, tmp_path / "copy"), model, optimizer)
    for name, values in named(model, optimizer).items():
        assert all(torch.equal(values[key], value) for key, value in before[name].items())
