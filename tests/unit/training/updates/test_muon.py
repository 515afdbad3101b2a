"""Muon compared with torch.optim.Muon, and properties of orthogonalisation."""

import copy
from pathlib import Path

import pytest
import torch
from torch import nn

from regard.training.checkpoint import load_training, save_training
from regard.training.optimizers import MuonConfig, build_optimizer, split_hidden
from regard.training.updates.muon import Muon, orthogonalize


class Small(nn.Module):
    """Model with an embedding, hidden matrices, a convolution, vectors and an output layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 6)
        self.hidden = nn.Linear(6, 9)
        self.kernel = nn.Conv1d(9, 9, 3, padding=1)
        self.output = nn.Linear(9, 7)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map tokens (B, T) to logits (B, T, V)."""
        grid = self.hidden(self.embedding(tokens)).tanh().mT
        logits: torch.Tensor = self.output(self.kernel(grid).mT)
        return logits


def _loss(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flip(1).flatten())


def test_singular_values_are_near_one() -> None:
    torch.manual_seed(0)
    for shape in ((1, 8, 5), (1, 3, 16), (2, 12, 12)):
        values = torch.linalg.svdvals(orthogonalize(torch.randn(shape)))
        assert values.min() > 0.5
        assert values.max() < 1.3


def test_singular_vectors_are_unchanged() -> None:
    torch.manual_seed(0)
    matrix = torch.randn(6, 10)
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    (found,) = orthogonalize(matrix[None])
    # With the same singular vectors, the product is diagonal.
    product = left.mT @ found @ right.mT
    torch.testing.assert_close(product, product.diagonal().diag(), atol=1e-5, rtol=0)


def test_zero_gradient_gives_a_zero_update() -> None:
    assert not orthogonalize(torch.zeros(1, 3, 4)).any()


def test_hidden_matrices_exclude_embeddings_and_output_layers() -> None:
    model = Small()
    groups = [{"params": list(model.parameters()), "weight_decay": 0.1, "scale": 1.0}]
    inside, outside = split_hidden(groups, model)
    assert inside["is_hidden"]
    assert not outside["is_hidden"]
    assert {id(p) for p in inside["params"]} == {id(model.hidden.weight), id(model.kernel.weight)}
    assert len(outside["params"]) == 5


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_updates_equal_those_of_torch(weight_decay: float) -> None:
    torch.manual_seed(0)
    model = Small()
    other = copy.deepcopy(model)
    config = MuonConfig(learning_rate=0.02, weight_decay=weight_decay)
    # torch.optim.Muon supports matrices only, so the kernel is frozen.
    model.kernel.weight.requires_grad_(False)
    other.kernel.weight.requires_grad_(False)
    ours = build_optimizer(config, model)
    assert isinstance(ours, Muon)
    theirs = [
        torch.optim.Muon(
            [other.hidden.weight],
            lr=0.02,
            momentum=config.momentum,
            weight_decay=weight_decay,
            adjust_lr_fn="match_rms_adamw",
        ),
        torch.optim.AdamW(
            [other.embedding.weight, other.output.weight],
            lr=0.02,
            betas=config.betas,
            weight_decay=weight_decay,
        ),
        torch.optim.AdamW(
            [p for p in other.parameters() if p.dim() == 1 and p.requires_grad],
            lr=0.02,
            betas=config.betas,
            weight_decay=0.0,
        ),
    ]
    for _ in range(5):
        # Fixed gradients: computed ones would diverge by rounding.
        for mine, yours in zip(model.parameters(), other.parameters(), strict=True):
            mine.grad = torch.randn_like(mine)
            yours.grad = mine.grad.clone()
        for optimizer in (ours, *theirs):
            optimizer.step()
    for (name, mine), yours in zip(model.named_parameters(), other.parameters(), strict=True):
        # torch.optim.Muon orthogonalises in bf16.
        tolerance = 5e-3 if name == "hidden.weight" else 1e-5
        torch.testing.assert_close(mine, yours, atol=tolerance, rtol=0, msg=name)


def test_kernel_is_updated_like_its_flattened_matrix() -> None:
    torch.manual_seed(0)
    kernel = nn.Parameter(torch.randn(4, 3, 2))
    matrix = nn.Parameter(kernel.detach().flatten(1).clone())
    gradient = torch.randn(4, 3, 2)
    for parameter in (kernel, matrix):
        parameter.grad = gradient.reshape(parameter.shape).clone()
        group = {"params": [parameter], "weight_decay": 0.0, "is_hidden": True}
        Muon([group], lr=0.1, momentum=0.9, betas=(0.9, 0.99), eps=1e-8).step()
    torch.testing.assert_close(kernel.flatten(1), matrix)


def test_matrices_of_one_shape_are_updated_independently() -> None:
    torch.manual_seed(0)
    together = [nn.Parameter(torch.randn(3, 5)) for _ in range(3)]
    alone = [nn.Parameter(parameter.detach().clone()) for parameter in together]
    for one, other in zip(together, alone, strict=True):
        one.grad = torch.randn(3, 5)
        other.grad = one.grad.clone()
    options = {"lr": 0.1, "momentum": 0.9, "betas": (0.9, 0.99), "eps": 1e-8}
    group = {"params": together, "weight_decay": 0.0, "is_hidden": True}
    Muon([group], **options).step()
    for parameter in alone:
        Muon([{**group, "params": [parameter]}], **options).step()
    for one, other in zip(together, alone, strict=True):
        torch.testing.assert_close(one, other)


def _train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> None:
    tokens = torch.arange(12).view(3, 4) % 7
    for _ in range(steps):
        model.zero_grad()
        _loss(model, tokens).backward()
        optimizer.step()


@pytest.mark.parametrize(
    ("dtype", "steps"), [(torch.float32, 2), (torch.bfloat16, 258)], ids=["fp32", "bf16"]
)
def test_resuming_from_a_saved_state_changes_nothing(
    tmp_path: Path, dtype: torch.dtype, steps: int
) -> None:
    torch.manual_seed(0)
    model = Small().to(dtype)
    model.output.weight.requires_grad_(False)
    other = copy.deepcopy(model)
    config = MuonConfig(learning_rate=0.02)
    uninterrupted = build_optimizer(config, model)
    _train(model, uninterrupted, steps + 2)
    first = build_optimizer(config, other)
    _train(other, first, steps)
    save_training(tmp_path, other, first, state={})
    second = build_optimizer(config, other)
    load_training(tmp_path, other, second)
    _train(other, second, 2)
    for mine, yours in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, yours)
    # In bf16, 256 + 1 = 256.
    assert second.state[other.hidden.bias]["step"] == steps + 2


def test_layer_decay_applies_to_both_kinds_of_updates() -> None:
    blocks = nn.ModuleList(nn.Linear(3, 3) for _ in range(2))
    model = nn.ModuleDict({"blocks": blocks, "output": nn.Linear(3, 2)})
    groups = build_optimizer(MuonConfig(), model, layer_decay=0.5).param_groups
    found = {
        id(p): (group["scale"], group["is_hidden"]) for group in groups for p in group["params"]
    }
    assert [found[id(block.weight)] for block in blocks] == [(0.5, True), (1.0, True)]
    assert [found[id(block.bias)] for block in blocks] == [(0.5, False), (1.0, False)]
    assert found[id(model["output"].weight)] == (1.0, False)


def test_tied_output_layer_is_not_hidden_and_listed_once() -> None:
    model = nn.ModuleDict({"embedding": nn.Embedding(5, 4), "output": nn.Linear(4, 5)})
    model["output"].weight = model["embedding"].weight
    groups = build_optimizer(MuonConfig(), model).param_groups
    assert not any(group["is_hidden"] for group in groups)
    assert sum(len(group["params"]) for group in groups) == 2


def test_parameters_without_gradient_are_unchanged_and_have_no_state() -> None:
    model = Small()
    before = copy.deepcopy(model.state_dict())
    optimizer = build_optimizer(MuonConfig(weight_decay=0.1), model)
    model.kernel.weight.grad = torch.ones_like(model.kernel.weight)
    optimizer.step()
    moved = {n for n, p in model.state_dict().items() if not torch.equal(p, before[n])}
    assert moved == {"kernel.weight"}
    assert list(optimizer.state) == [model.kernel.weight]


def test_update_of_a_single_row_has_the_size_of_adamw() -> None:
    row = nn.Parameter(torch.zeros(1, 50))
    row.grad = torch.randn(1, 50)
    group = {"params": [row], "weight_decay": 0.0, "is_hidden": True}
    Muon([group], lr=1.0, momentum=0.9, betas=(0.9, 0.99), eps=1e-8).step()
    assert 0.1 < row.square().mean().sqrt() < 0.3
    # Only the length has changed, not the direction.
    direction = nn.functional.cosine_similarity(row, row.grad)
    torch.testing.assert_close(direction, torch.tensor([-1.0]))
