import pytest
import torch

from regard.bench.sizes import SIZES, RandomBatches, build_task, find_size
from regard.core.errors import ConfigError
from tests.bench_sizes import TRANSFORMER


def test_reference_sizes():
    small, base = (SIZES[name].load().model for name in ("small", "base"))
    shapes = [
        (one.num_layers, one.dim, one.feed_forward_dim, one.num_heads, one.dropout)
        for model in (small, base)
        for one in (model.encoder, model.decoder)
    ]
    assert shapes == [(3, 256, 1024, 4, 0.1)] * 2 + [(6, 512, 2048, 8, 0.1)] * 2
    assert (SIZES["small"].num_pairs, SIZES["small"].length) == (128, 16)
    assert (SIZES["base"].num_pairs, SIZES["base"].length) == (1024, 24)
    assert {size.vocab_size for size in SIZES.values()} == {8000}


@pytest.mark.parametrize("name", SIZES)
def test_training_neither_ends_nor_validates(name):
    train = SIZES[name].load("bf16", seed=3).train
    assert (train.max_epochs, train.patience, train.average_last) == (0, 0, 0)
    assert train.validate_every == train.max_steps >= 1_000_000
    assert (train.precision, train.compile) == ("bf16", "auto")
    assert SIZES[name].load(can_compile=False).train.compile == "never"
    assert train.label_smoothing == 0.1


def test_unknown_size_is_refused():
    with pytest.raises(ConfigError, match=r"--size.*'small', 'base'.*but is 'bsae'.*'base'"):
        find_size("bsae")


def test_task_has_the_vocabulary_and_precision_of_its_size():
    task = build_task(TRANSFORMER, TRANSFORMER.load("bf16"), device=torch.device("cpu"))
    assert task.source.size == task.target.size == TRANSFORMER.vocab_size
    assert task.model.encoder.embedding.weight is task.model.decoder.output.weight
    assert task.autocast().fast_dtype == torch.bfloat16


def first(count, *, seed=1, is_padded=False):
    batches = RandomBatches(TRANSFORMER, seed=seed, is_padded=is_padded)
    return batches, [batch for batch, _ in zip(batches.epoch(0), range(count), strict=False)]


def test_batches_have_the_shape_of_the_size_and_no_padding():
    batches, (batch,) = first(1)
    size = TRANSFORMER
    assert batch.source.shape == (size.num_pairs, size.length)
    assert batch.target.shape == (size.num_pairs, size.length + 1)
    assert batch.source_mask.all() and batch.target_mask.all()
    assert batch.num_target_tokens == batches.tokens_per_batch == size.num_pairs * size.length
    assert (batch.source > batches.pad).all()


def test_batches_repeat_and_depend_on_the_seed():
    _, ours = first(9)
    _, again = first(9)
    _, others = first(9, seed=2)
    assert torch.equal(ours[0].source, ours[8].source)
    assert not torch.equal(ours[0].source, ours[1].source)
    assert all(torch.equal(a.target, b.target) for a, b in zip(ours, again, strict=True))
    assert not torch.equal(ours[0].source, others[0].source)


def test_padded_batches_count_real_target_tokens_only():
    batches, all_batches = first(8, is_padded=True)
    counts = [int((batch.target[:, 1:] != batches.pad).sum()) for batch in all_batches]
    assert [batch.num_target_tokens for batch in all_batches] == counts
    assert batches.tokens_per_batch == sum(counts) / 8
    lengths = torch.cat([batch.source_mask.sum(1) for batch in all_batches])
    assert (lengths.min(), lengths.max()) == (TRANSFORMER.length // 2, TRANSFORMER.length)


def test_resumed_epoch_skips_batches():
    batches, (_, second) = first(2)
    assert torch.equal(next(batches.epoch(0, skip=1)).source, second.source)
