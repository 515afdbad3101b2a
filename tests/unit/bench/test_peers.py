import pytest
import torch

from regard.bench.peers import loop, table
from regard.bench.peers.table import PEERS, build_peer
from regard.bench.sizes import RandomBatches
from regard.core.errors import RegardError
from tests.bench_sizes import CONVOLUTIONAL, RECURRENT, TRANSFORMER

SIZES = {"transformer": TRANSFORMER, "recurrent": RECURRENT, "convolutional": CONVOLUTIONAL}


def build(peer, size, *, precision="fp32", is_padded=False, can_compile=False):
    batches = RandomBatches(size, seed=1, is_padded=is_padded)
    torch.manual_seed(1)
    return build_peer(
        PEERS[peer],
        size.load(precision),
        batches,
        vocab_size=size.vocab_size,
        device=torch.device("cpu"),
        can_compile=can_compile,
    )


def mean_loss(contender, size):
    """Loss of the batches in evaluation mode."""
    batches = RandomBatches(size, seed=1).epoch(0)
    loss = contender._loss.eval()
    with torch.no_grad():
        values = [
            loss(batch.source, batch.target, None)
            for batch, _ in zip(batches, range(8), strict=False)
        ]
    loss.train()
    return float(torch.stack(values).mean())


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("kind", SIZES)
def test_plain_torch_learns_the_batches(kind, precision):
    contender = build("torch", SIZES[kind], precision=precision)
    before = mean_loss(contender, SIZES[kind])
    assert contender.run(40) > 0
    assert mean_loss(contender, SIZES[kind]) < before - 0.005
    contender.close()


@pytest.mark.parametrize("is_padded", [False, True])
def test_marian_trains(is_padded):
    pytest.importorskip("transformers")
    contender = build("hf", TRANSFORMER, is_padded=is_padded)
    assert contender.run(2) > 0
    assert contender.note == ""
    contender.close()


@pytest.mark.parametrize("kind", SIZES)
def test_padded_batches_train(kind):
    contender = build("torch", SIZES[kind], is_padded=True)
    assert contender.run(1) > 0
    assert all(torch.isfinite(one).all() for one in contender._parameters)
    contender.close()


def test_loss_equals_that_of_our_task():
    from regard.bench.sizes import build_task

    batch = next(RandomBatches(TRANSFORMER, seed=1, is_padded=True).epoch(0))
    task = build_task(TRANSFORMER, TRANSFORMER.load("fp32"), device=torch.device("cpu"))
    for module in task.model.modules():
        if hasattr(module, "dropout") and isinstance(module.dropout, float):
            module.dropout = 0.0
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0

    class Ours(torch.nn.Module):
        def forward(self, source, targets, mask):
            return task.model(source, batch.source_mask, targets).logits

    task.model.train()
    ours = task.loss(batch)
    pad = task.target.tokenizer.pad
    theirs = loop.PeerLoss(Ours(), task.recipe.train, device=task.device, pad=pad)
    expected = theirs(batch.source, batch.target, None)
    torch.testing.assert_close(ours.total / ours.count, expected)


def test_compiled_loss_is_noted(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda module: module)
    contender = build("torch", TRANSFORMER, can_compile=True)
    contender.run(2)
    assert contender.note == loop.COMPILED
    contender.close()


def test_failed_compilation_is_noted_and_training_continues(monkeypatch):
    def fail(*_):
        raise RuntimeError("no C++ compiler\nwith many lines")

    monkeypatch.setattr(torch, "compile", lambda module: fail)
    contender = build("torch", TRANSFORMER, can_compile=True)
    assert contender.run(2) > 0
    assert contender.note == "not compiled (RuntimeError: no C++ compiler)"
    contender.close()


def test_recurrent_peer_is_not_compiled(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda module: pytest.fail("compiled"))
    contender = build("torch", RECURRENT, can_compile=True)
    contender.run(1)
    assert contender.note == ""
    contender.close()


def test_missing_package_is_named(monkeypatch):
    def missing(name):
        raise table.PackageNotFoundError(name)

    monkeypatch.setattr(table, "version", missing)
    with pytest.raises(RegardError, match=r"`transformers` is not installed"):
        build("hf", TRANSFORMER)


def test_missing_model_is_named():
    with pytest.raises(RegardError, match=r"`transformers` has no .* 'convolution'"):
        build("hf", CONVOLUTIONAL)
