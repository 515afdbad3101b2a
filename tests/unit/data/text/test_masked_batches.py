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


def build(field, belongs=None, **changes):
    return MaskedBatches(
        SEQUENCES,
        SEQUENCES,
        BatchConfig(max_tokens=160, max_length=50),
        fields=(field,),
        masking=TokenMasking(TokenMaskingConfig(), field.tokenizer, seed=1),
        belongs=belongs,
        seed=1,
        **changes,
    )


def restore(batch):
    """The texts of a batch with the hidden tokens put back."""
    values = batch.values.flatten().clone()
    values[batch.hidden] = batch.labels
    rows = values.view(batch.values.shape)
    return {
        number: rows[place][batch.mask[place]].tolist() for place, number in enumerate(batch.rows)
    }


def test_labels_put_back_at_hidden_positions_give_the_texts(field):
    found = {}
    for batch in build(field).epoch(3):
        found |= restore(batch)
    assert found == dict(enumerate(SEQUENCES))


def test_a_text_has_the_same_hidden_whatever_the_order(field):
    def shown(batches):
        return {
            row: values[mask].tolist()
            for batch in batches
            for row, values, mask in zip(batch.rows, batch.values, batch.mask, strict=True)
        }

    shuffled, sorted_ = build(field), build(field, is_shuffled=False)
    assert shown(shuffled.epoch(2)) == shown(sorted_.epoch(2))
    assert shown(shuffled.epoch(2)) != shown(shuffled.epoch(1))


def test_skipped_batches_are_those_seen_before(field):
    whole, rest = list(build(field).epoch(1)), list(build(field).epoch(1, skip=3))
    assert len(whole) == build(field).num_batches(1)
    assert all(
        torch.equal(one.values, two.values) for one, two in zip(whole[3:], rest, strict=True)
    )


def test_pairs_bring_along_whether_they_belong_together(field):
    belongs = [number % 3 == 0 for number in range(len(SEQUENCES))]
    for batch in build(field, belongs).epoch(0):
        assert batch.belongs.tolist() == [int(belongs[row]) for row in batch.rows]
    assert next(build(field).epoch(0)).belongs is None


def test_the_loss_is_over_hidden_tokens(field):
    batch = next(build(field).epoch(0))
    assert batch.num_target_tokens == len(batch.hidden) == len(batch.labels)


def test_a_batch_moves_with_all_but_its_mask(field):
    belongs = [True] * len(SEQUENCES)
    moved = next(build(field, belongs).epoch(0)).to(torch.device("meta"))
    assert {moved.values.device.type, moved.hidden.device.type, moved.belongs.device.type} == {
        "meta"
    }
    assert moved.mask.device.type == "cpu"
