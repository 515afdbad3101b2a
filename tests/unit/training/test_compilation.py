from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import nn

from regard.attention.positions import Positions
from regard.attention.recording import record
from regard.core.eager import force_eager
from regard.models.transformer import VisionBlockConfig, build_stack
from regard.training import compilation, losses
from regard.training.compilation import Compiler
from regard.training.plan import Plan
from tests.training_bench import NUM_CLASSES, SHORT, WIDTH, Bench

# The compiler itself warns of deprecated functions of torch.
pytestmark = pytest.mark.filterwarnings("ignore")
CPU = torch.device("cpu")


class Stacked(nn.Module):
    """Model with a stack of blocks."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.blocks = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(2))
        self.output = nn.Linear(WIDTH, NUM_CLASSES)

    def forward(self, states):
        for block in self.blocks:
            states = states + block(states).relu()
        return self.output(states)


@pytest.fixture
def graphs(monkeypatch):
    """Return the compiled graphs; their code is that of the model."""
    graphs, original = [], torch.compile

    def backend(graph, _inputs, options=None):
        graphs.append(graph)
        return graph.forward

    monkeypatch.setattr(torch, "compile", partial(original, backend=backend))
    torch.compiler.reset()
    return graphs


def test_compiled_training_equals_eager_training_and_ends_with_the_original_blocks(
    tmp_path, graphs
):
    eager, compiled = Bench(tmp_path / "a", SHORT, model=Stacked()), Stacked()
    eager.run()
    assert not graphs
    bench = Bench(tmp_path / "b", replace(SHORT, compile="always"), model=compiled)
    bench.run()
    assert graphs
    assert not any("forward" in vars(block) for block in compiled.blocks)
    assert losses._rows.losses is losses._row_losses
    for name, weights in bench.present_weights().items():
        assert torch.equal(weights, eager.present_weights()[name]), name


def test_compiled_blocks_run_eagerly_where_that_is_forced(graphs):
    model = Stacked()
    blocks = compilation.CompiledBlocks(model)
    states = torch.randn(2, WIDTH)
    model(states)  # loads the compiler
    num_graphs = len(graphs)
    assert num_graphs
    with force_eager():
        expected = model(torch.randn(5, 3, WIDTH))
    assert expected.shape == (5, 3, NUM_CLASSES)
    assert len(graphs) == num_graphs
    blocks.remove()


def test_attention_is_recorded_from_compiled_blocks(graphs):
    positions = Positions(dim=8, num_heads=2)
    stack = nn.Module()
    stack.blocks = build_stack(VisionBlockConfig(dim=8, num_heads=2, num_layers=2), positions)
    blocks = compilation.CompiledBlocks(stack)
    states = torch.randn(2, 5, 8)
    stack.blocks(states)
    assert graphs
    with record(stack, is_self=True) as maps:
        stack.blocks(states)
    assert maps.stack().shape == (2, 2, 2, 5, 5)
    blocks.remove()


@pytest.mark.parametrize(
    ("choice", "total_steps", "is_compiled"),
    [("auto", 10_000_000, True), ("auto", 60, False), ("auto", 0, True), ("never", 0, False)],
)
def test_automatic_compilation_depends_on_the_remaining_time(
    monkeypatch, choice, total_steps, is_compiled
):
    # As if the model were on a GPU, where 'auto' compiles.
    compiler = Compiler(Stacked(), "never" if choice == "never" else "always", Plan(), device=CPU)
    compiler._is_measured = True
    compiler._plan = Plan(total_steps=total_steps)
    first, last = compilation.MEASURED_STEPS
    times = iter([0.0, 0.1 * (last - first)])
    monkeypatch.setattr(compiler, "_now", lambda: next(times))
    compiled_at = [step for step in range(last + 60) if compiler.begin_step(step, 0.0)]
    assert compiled_at == ([last] if is_compiled else [])
    with compiler:
        pass


def test_models_on_a_cpu_or_without_blocks_are_not_compiled_automatically():
    for model, choice in ((Stacked(), "auto"), (nn.Linear(2, 2), "always")):
        compiler = Compiler(model, choice, Plan(), device=CPU)
        assert not any(compiler.begin_step(step, 0.0) for step in range(300))


@pytest.mark.parametrize("choice", ["auto", "always"])
def test_training_goes_on_without_compilation_if_it_fails(tmp_path, monkeypatch, messages, choice):
    def fail(_function, **_options):
        def call(*_inputs):
            raise RuntimeError("no compiler\ndetails")

        return call

    monkeypatch.setattr(torch, "compile", fail)
    bench = Bench(tmp_path, replace(SHORT, compile="always"), model=Stacked())
    bench.trainer._compiler._is_measured = choice == "auto"
    monkeypatch.setattr(compilation, "MEASURED_STEPS", (0, 2))
    monkeypatch.setattr(compilation, "MIN_SECONDS", 0)
    if choice == "always":
        with pytest.raises(RuntimeError, match="no compiler"):
            bench.run()
        return
    assert bench.run().progress.step == 10
    assert "Training goes on without compilation, which failed: no compiler" in messages()
