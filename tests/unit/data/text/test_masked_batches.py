import pytest
import torch

from regard.data.batching import BatchConfig
from regard.data.text.field import TextField
from regard.data.text.masked_batches import MaskedBatches
from regard.data.text.masking import TokenMasking, TokenMaskingConfig
from regard.data.text.tokenizers import TokenizerConfig
from regard.data.text.vocabulary import train_tokenizer

SEQUENCES = [[2, *range(5, 5 + length), 3] for length in range(1, 40)]


@pytest.fixture(scope="module")
def field():
    words = " ".join(f"w{number}" for number in range(60))
    config = TokenizerConfig(kind="word", extra_tokens=("<mask>",))
    return TextField(train_tokenizer(config, [words]), has_start=True)


def build(field, is_next=None, **changes):
    return MaskedBatches(
        SEQUENCES,
        SEQUENCES,
        BatchConfig(max_tokens=160, max_length=50),
        fields=(field,),
        masking=TokenMasking(TokenMaskingConfig(), field.tokenizer, seed=1),
        is_next=is_next,
        seed=1,
        **changes,
    )


def restore(batch):
    """Return the texts of a batch with masked tokens restored."""
    values = batch.values.flatten().clone()
    values[batch.masked_positions] = batch.labels
    rows = values.view(batch.values.shape)
    return {
        number: rows[index][batch.mask[index]].tolist() for index, number in enumerate(batch.rows)
    }


def test_labels_at_masked_positions_restore_the_texts(field):
    found = {}
    for batch in build(field).epoch(3):
        found |= restore(batch)
    assert found == dict(enumerate(SEQUENCES))


def test_masked_tokens_of_a_text_do_not_depend_on_the_order(field):
    def shown(batches):
        return {
            row: values[mask].tolist()
            for batch in batches
            for row, values, mask in zip(batch.rows, batch.values, batch.mask, strict=True)
        }

    shuffled, sorted_ = build(field), build(field, is_shuffled=False)
    assert shown(shuffled.epoch(2)) == shown(sorted_.epoch(2))
    assert shown(shuffled.epoch(2)) != shown(shuffled.epoch(1))


def test_skipped_batches_are_the_first(field):
    whole, rest = list(build(field).epoch(1)), list(build(field).epoch(1, skip=3))
    assert len(whole) == build(field).num_batches(1)
    assert all(
        torch.equal(one.values, two.values) for one, two in zip(whole[3:], rest, strict=True)
    )


def test_batches_of_pairs_have_labels_of_consecutive_texts(field):
    is_next = [number % 3 == 0 for number in range(len(SEQUENCES))]
    for batch in build(field, is_next).epoch(0):
        assert batch.is_next.tolist() == [int(is_next[row]) for row in batch.rows]
    assert next(build(field).epoch(0)).is_next is None


def test_the_loss_is_over_masked_tokens(field):
    batch = next(build(field).epoch(0))
    assert batch.num_target_tokens == len(batch.masked_positions) == len(batch.labels)


def test_a_batch_is_moved_without_its_mask(field):
    is_next = [True] * len(SEQUENCES)
    moved = next(build(field, is_next).epoch(0)).to(torch.device("meta"))
    assert {
        moved.values.device.type,
        moved.masked_positions.device.type,
        moved.is_next.device.type,
    } == {"meta"}
    assert moved.mask.device.type == "cpu"


@pytest.mark.parametrize("num", [2, 3, 100])
def test_parts_of_a_batch_restore_its_texts_and_keep_its_labels(field, num):
    for batch in build(field, is_next=[True] * len(SEQUENCES)).epoch(0):
        parts = batch.split(num)
        found = {}
        for part in parts:
            found |= restore(part)
        assert found == restore(batch)
        assert torch.equal(torch.cat([part.labels for part in parts]), batch.labels)
        assert [len(part.is_next) for part in parts] == [len(part.rows) for part in parts]
