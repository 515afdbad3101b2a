"""Training steps on a GPU: captured and compiled steps against eager ones."""

import pytest
import torch

from regard.attention import short
from regard.attention.attend import attend
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


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:The .grad attribute")
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


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("lengths", [(24, 24), (7, 33)])
def test_short_attention_equals_explicit_attention(lengths, is_causal):
    num_queries, num_keys = lengths
    if is_causal:
        num_keys = num_queries
    torch.manual_seed(1)
    shapes = [(5, 2, length, 32) for length in (num_queries, num_keys, num_keys)]
    inputs = [torch.randn(shape, device=DEVICE) for shape in shapes]
    mask = torch.rand(5, 1, 1, num_keys, device=DEVICE) < 0.7
    mask[0] = False  # a fully masked sentence
    results = []
    for dtype in (torch.float32, torch.bfloat16):
        leaves = [one.to(dtype, copy=True).requires_grad_() for one in inputs]
        if dtype == torch.bfloat16:
            assert short.is_supported(leaves[0], leaves[1], mask)
        context, _ = attend(
            *leaves, mask=mask, is_causal=is_causal, needs_weights=dtype == torch.float32
        )
        (context * torch.linspace(-1, 1, 32, device=DEVICE)).sum().backward()
        results.append([context, *(leaf.grad for leaf in leaves)])
    for exact, fused in zip(*results, strict=True):
        assert torch.allclose(fused.float(), exact, atol=0.03)
        assert fused.isfinite().all()


@pytest.mark.parametrize("num_keys", [24, 40])
def test_dropout_of_short_attention_keeps_the_mean_and_is_the_same_in_the_backward_pass(num_keys):
    torch.manual_seed(1)
    # With equal keys all weights are 1 / K, so each context is the mean of the kept values.
    queries = torch.zeros(512, 2, 16, 32, device=DEVICE, dtype=torch.bfloat16, requires_grad=True)
    keys = torch.zeros(512, 2, num_keys, 32, device=DEVICE, dtype=torch.bfloat16)
    values = torch.ones_like(keys, requires_grad=True)
    context, _ = attend(queries, keys, values, dropout=0.25)
    assert context.float().mean().item() == pytest.approx(1.0, abs=0.01)
    assert context.float().std() > 0.05
    context.sum().backward()
    # The gradient of a value counts the queries that kept it, as the contexts do: the sums of each
    # head are equal to rounding, and would differ by 3 % with another mask.
    kept, counted = (one.float().mean(-1).sum(-1) for one in (context, values.grad))
    assert torch.allclose(kept, counted, rtol=0.01)
