import random

import pytest
import torch

from regard.core.errors import ConfigError, DataError
from regard.data.batching import BatchConfig, Batches, limit_lengths
from regard.data.text.field import TextField
from regard.data.text.tokenizers import TokenizerConfig
from regard.data.text.vocabulary import train_tokenizer

TOKENIZER = train_tokenizer(TokenizerConfig(kind="word"), ["a b c"])
FIELDS = (TextField(TOKENIZER, has_start=False), TextField(TOKENIZER, has_start=True))
GENERATOR = random.Random(0)
SOURCES = [[4] * GENERATOR.randint(1, 20) + [3] for _ in range(200)]
TARGETS = [[2] + [5] * GENERATOR.randint(1, 20) + [3] for _ in range(200)]
CONFIG = BatchConfig(max_tokens=100, max_length=30, pool=5)


def build(config=CONFIG, sources=SOURCES, targets=TARGETS, **options):
    return Batches(sources, targets, config, fields=FIELDS, **options)


def rows(batches, number=0, **options):
    return [batch.rows for batch in batches.epoch(number, **options)]


@pytest.mark.parametrize("is_shuffled", [True, False])
def test_every_example_occurs_once(is_shuffled):
    seen = [row for batch in rows(build(is_shuffled=is_shuffled)) for row in batch]
    assert sorted(seen) == list(range(200))


@pytest.mark.parametrize("is_shuffled", [True, False])
def test_no_batch_exceeds_the_budget(is_shuffled):
    batches = list(build(is_shuffled=is_shuffled).epoch(0))
    assert max(max(b.source.numel(), b.target.numel()) for b in batches) <= 100


def test_the_number_of_sentences_can_be_limited():
    assert max(map(len, rows(build(BatchConfig(max_sentences=7))))) == 7


def test_largest_batches_have_the_longest_example_and_the_most_positions():
    batches = build()
    longest, most = batches.largest()
    every = list(batches.epoch(0))

    def size(batch):
        return batch.source.numel() + batch.target.numel()

    def length(batch):
        return max(batch.source.shape[1], batch.target.shape[1])

    assert length(longest) == max(map(length, every))
    assert size(most) == max(map(size, every))


def test_other_budget_keeps_the_examples_and_settings():
    batches = build(BatchConfig(max_tokens="auto", max_length=30)).with_max_tokens(100)
    assert batches.config == BatchConfig(max_tokens=100, max_length=30)
    assert rows(batches) == rows(build(batches.config))


def test_automatic_budget_is_the_default_until_it_is_measured():
    assert rows(build(BatchConfig(max_tokens="auto"))) == rows(build(BatchConfig()))


def test_an_example_longer_than_the_budget_is_a_batch_by_itself():
    batches = build(sources=[[4] * 150, [4], [4]], targets=[[5], [5], [5]])
    assert sorted(map(len, rows(batches))) == [1, 2]


def test_a_batch_holds_the_rows_it_names():
    batch = next(build().epoch(0))
    pairs = zip(batch.source, batch.source_mask, strict=True)
    unpadded = [ids[mask].tolist() for ids, mask in pairs]
    assert unpadded == [SOURCES[row] for row in batch.rows]


def test_the_target_of_a_batch_belongs_to_its_source():
    batch = next(build().epoch(0))
    assert batch.target_mask.sum(1).tolist() == [len(TARGETS[row]) for row in batch.rows]


def test_the_same_seed_and_epoch_give_the_same_order():
    assert rows(build(seed=3), 5) == rows(build(seed=3), 5)


def test_an_epoch_does_not_depend_on_earlier_epochs():
    batches = build()
    rows(batches, 0)
    assert rows(batches, 1) == rows(build(), 1)


@pytest.mark.parametrize("other", [{"seed": 1, "number": 0}, {"seed": 0, "number": 1}])
def test_another_seed_or_epoch_gives_another_order(other):
    assert rows(build(seed=other["seed"]), other["number"]) != rows(build(), 0)


@pytest.mark.parametrize("skip", [0, 1, 17])
def test_resuming_gives_the_same_remaining_batches(skip):
    assert rows(build(), 2, skip=skip) == rows(build(), 2)[skip:]


def test_skipped_batches_are_not_stacked(monkeypatch):
    batches = build()
    calls = []
    stack = batches.stack
    monkeypatch.setattr(batches, "stack", lambda *call: calls.append(call) or stack(*call))
    next(batches.epoch(0, skip=9))
    assert len(calls) == 1


def test_the_number_of_batches_equals_that_of_the_epoch():
    assert build().num_batches(3) == len(rows(build(), 3))


def test_the_padding_share_is_that_of_the_stacked_batches():
    batches = list(build().epoch(0))
    masks = [mask for batch in batches for mask in (batch.source_mask, batch.target_mask)]
    real = sum(int(mask.sum()) for mask in masks)
    assert build().padding_share() == pytest.approx(1 - real / sum(m.numel() for m in masks))


def test_larger_pools_need_less_padding():
    small, large = (BatchConfig(max_tokens=100, max_length=30, pool=pool) for pool in (1, 10))
    assert build(large).padding_share() < build(small).padding_share()


def test_batches_do_not_come_in_order_of_length():
    lengths = [batch.source.shape[1] for batch in build().epoch(0)]
    assert lengths != sorted(lengths) and lengths != sorted(lengths, reverse=True)


def test_without_shuffling_the_longest_batches_are_first():
    lengths = [max(b.source.shape[1], b.target.shape[1]) for b in build(is_shuffled=False).epoch(0)]
    assert lengths == sorted(lengths, reverse=True)


def test_without_shuffling_every_epoch_is_the_same():
    batches = build(is_shuffled=False)
    assert rows(batches, 0) == rows(batches, 1)


def test_the_shards_of_all_processes_cover_all_batches():
    whole = set(rows(build(is_shuffled=False)))
    parts = [rows(build(is_shuffled=False, shard=(rank, 3))) for rank in range(3)]
    assert set().union(*parts) == whole and sum(map(len, parts)) == len(whole)


def test_all_processes_have_the_same_number_of_batches():
    assert len({build(shard=(rank, 3)).num_batches(0) for rank in range(3)}) == 1


def test_more_processes_than_batches_are_an_error():
    batches = build(sources=[[4, 3]] * 2, targets=[[2, 3]] * 2, shard=(0, 2))
    with pytest.raises(DataError, match="2 examples make 1 batches, too few for 2 processes"):
        batches.num_batches(0)


def test_unequal_sides_are_an_error():
    with pytest.raises(DataError, match="equally many sources and targets.* are 1 and 2"):
        build(sources=[[4]], targets=[[5], [5]])


def test_no_examples_are_an_error():
    with pytest.raises(DataError, match="one at least, but there are 0 and 0"):
        build(sources=[], targets=[])


def test_a_negative_seed_is_an_error():
    with pytest.raises(ConfigError, match=r"`seed` must be at least 0, but is -1\."):
        build(seed=-1)


def test_tensors_are_pinned_on_demand(monkeypatch):
    pinned = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: pinned.append(self) or self)
    next(build(is_pinned=True).epoch(0))
    assert len(pinned) == 4


LONG = ([[4, 3], [4, 4, 4, 4, 3], [4, 3]], [[2, 3], [2, 3], [2, 5, 5, 5, 3]])


def test_pairs_with_a_long_side_are_dropped():
    sources, targets, kept = limit_lengths(*LONG, BatchConfig(max_length=4))
    assert (sources, targets, list(kept)) == ([[4, 3]], [[2, 3]], [0])


def test_a_truncated_side_keeps_its_end_token():
    sources, targets, _ = limit_lengths(*LONG, BatchConfig(max_length=4, too_long="truncate"))
    assert (sources[1], targets[2]) == ([4, 4, 4, 3], [2, 5, 5, 3])


def test_truncating_keeps_every_row():
    *_, kept = limit_lengths(*LONG, BatchConfig(max_length=4, too_long="truncate"))
    assert list(kept) == [0, 1, 2]


@pytest.mark.parametrize(("too_long", "word"), [("drop", "dropped"), ("truncate", "truncated")])
def test_long_pairs_are_counted_once(caplog, too_long, word):
    limit_lengths(*LONG, BatchConfig(max_length=4, too_long=too_long))
    expected = f"{word} 2 of 3 pairs with a side of over 4 tokens (`max_length`)"
    assert [record.getMessage() for record in caplog.records] == [expected]


def test_nothing_is_logged_if_all_pairs_fit(caplog):
    limit_lengths(*LONG, BatchConfig(max_length=5))
    assert not caplog.records


def test_dropping_everything_is_an_error():
    with pytest.raises(DataError, match=r"Every one of the 1 pairs .* over 3 tokens\. Raise `max_"):
        limit_lengths([[4] * 5], [[2, 3]], BatchConfig(max_length=3))


def test_the_budget_must_be_at_least_the_maximum_length():
    with pytest.raises(ConfigError, match=r"`max_tokens` must be at least `max_length` \(200\), b"):
        BatchConfig(max_tokens=100)


@pytest.mark.parametrize(("name", "least"), [("max_sentences", 0), ("max_length", 3), ("pool", 1)])
def test_settings_have_a_minimum(name, least):
    with pytest.raises(ConfigError, match=f"`{name}` must be at least {least}, but is {least - 1}"):
        BatchConfig(**{name: least - 1})
