"""Training steps on a GPU: captured and compiled steps against eager ones."""

import pytest
import torch

from regard.data.batch import Batch
from regard.runs.recipes import load_recipe
from regard.tasks.generation.task import Predictor
from regard.training.compilation import CompiledBlocks
from regard.training.gradients import CapturedGradients, Gradients
from tests.device.test_cuda import SOURCES, TokenizerConfig, both_sides, train_tokenizer

pytestmark = [
    pytest.mark.device,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here"),
]
DEVICE = torch.device("cuda")
RECIPES = ("vaswani2017-small", "modern-small", "bahdanau2015", "luong2015", "gehring2017")


def build_task(name, *overrides):
    recipe = load_recipe(name, ["train.precision=bf16", *overrides])
    tokenizer = train_tokenizer(TokenizerConfig(kind="word", vocab_size=20), SOURCES)
    task = Predictor.from_scratch(recipe, {**both_sides(tokenizer)}, device=DEVICE)
    task.model.train()
    return task


def random_batches(num, *, size=6, source_length=9, target_length=11, seed=0):
    generator = torch.Generator().manual_seed(seed)

    def ids(length):
        return torch.randint(4, 9, (size, length), generator=generator)

    for _ in range(num):
        lengths = torch.randint(3, source_length + 1, (size, 1), generator=generator)
        yield Batch(
            source=ids(source_length).pin_memory(),
            source_mask=torch.arange(source_length) < lengths,
            target=ids(target_length).pin_memory(),
            target_mask=torch.ones(size, target_length, dtype=torch.bool).pin_memory(),
            rows=tuple(range(size)),
        )


def train(task, gradients, batches):
    """Return the losses of a few steps, on a stream of their own as in training."""
    optimizer = torch.optim.Adam(task.model.parameters(), lr=1e-3, fused=True)
    losses = []
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.manual_seed(3)
        for batch in batches:
            optimizer.zero_grad(set_to_none=False)
            sums = gradients.add(batch)
            optimizer.step()
            losses.append((sums[0] / sums[2]).item())
    return torch.tensor(losses)


@pytest.mark.parametrize("name", RECIPES)
def test_captured_steps_equal_eager_steps(name):
    eager = build_task(name)
    expected = train(eager, Gradients(eager.loss, DEVICE), random_batches(8))
    task = build_task(name)
    captured = CapturedGradients(task.loss, DEVICE, model=task.model)
    losses = train(task, captured, random_batches(8))
    assert captured._is_capturable
    assert len(captured._graphs) == 1
    # The kernels are the same, and so are the states of the random generator.
    assert torch.allclose(losses, expected, rtol=2e-2)


@pytest.mark.parametrize("name", ["vaswani2017-small", "modern-small"])
def test_compiled_steps_equal_eager_steps_without_dropout(name):
    overrides = ("model.encoder.dropout=0", "model.decoder.dropout=0")
    eager = build_task(name, *overrides)
    expected = train(eager, Gradients(eager.loss, DEVICE), random_batches(6))
    task = build_task(name, *overrides)
    compiled = CompiledBlocks(task.model)
    try:
        captured = CapturedGradients(task.loss, DEVICE, model=task.model)
        losses = train(task, captured, random_batches(6))
    finally:
        compiled.remove()
    assert captured._is_capturable
    assert torch.allclose(losses, expected, rtol=2e-2)
