import torch
from torch import nn

from regard.training.optimizers import AdamConfig, SgdConfig
from regard.training.settings import TrainConfig
from tests.training_bench import NUM_CLASSES, WIDTH, Bench, assert_same_weights


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


def test_update_of_a_block_is_proportional_to_its_learning_rate(tmp_path):
    settings = {"optimizer": SgdConfig(learning_rate=0.5), "max_steps": 1, "clip_norm": 0}
    uniform, decayed = (
        Bench(tmp_path / f"{decay}", TrainConfig(layer_decay=decay, **settings), model=Layered())
        for decay in (1.0, 0.5)
    )
    start = {name: weight.clone() for name, weight in Layered().named_parameters()}
    for bench in (uniform, decayed):
        bench.run()
    moves = [
        {name: weight - start[name] for name, weight in bench.model.named_parameters()}
        for bench in (uniform, decayed)
    ]
    for name, share in (("first", 0.25), ("blocks.0", 0.5), ("blocks.1", 1.0), ("output", 1.0)):
        torch.testing.assert_close(
            moves[1][f"{name}.weight"], share * moves[0][f"{name}.weight"], rtol=1e-4, atol=1e-6
        )


def test_only_unfrozen_weights_change(tmp_path):
    bench = layered_bench(tmp_path, 3, freeze=("first", "blocks.0"))
    bench.run()
    for name, weight in Layered().named_parameters():
        is_same = torch.equal(weight, dict(bench.model.named_parameters())[name])
        assert is_same == name.startswith(("first", "blocks.0"))


def test_resuming_changes_nothing_with_layer_decay_and_frozen_weights(tmp_path):
    settings = {"layer_decay": 0.7, "freeze": ("blocks.0.bias",)}
    uninterrupted = layered_bench(tmp_path / "whole", 8, **settings)
    uninterrupted.run()
    layered_bench(tmp_path / "parts", 4, **settings).run()
    rest = layered_bench(tmp_path / "parts", 8, **settings)
    rest.trainer.resume()
    rest.run()
    assert_same_weights(rest.present_weights(), uninterrupted.present_weights())
