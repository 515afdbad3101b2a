import pytest
import torch

from regard.core.errors import CheckpointError, DataError
from regard.data.batching import BatchConfig
from regard.data.labels import LabelField, LabelledBatches
from regard.data.text.field import TextField
from regard.data.text.tokenizers import TokenizerConfig
from regard.data.text.vocabulary import train_tokenizer


@pytest.fixture
def labels():
    return LabelField.fit(["positive", "negative", "positive"])


def test_labels_are_numbered_in_alphabetical_order(labels):
    assert [labels.read("negative"), labels.read("positive")] == [0, 1]
    assert labels.write(1) == "positive"


def test_labels_are_saved_and_loaded(labels, tmp_path):
    labels.save(tmp_path, "labels")
    assert LabelField.load(tmp_path).names == labels.names


def test_missing_file_of_labels_is_named(tmp_path):
    with pytest.raises(CheckpointError, match=r"labels\.json is missing"):
        LabelField.load(tmp_path)


def test_unknown_label_is_named_with_the_known_ones_and_the_nearest(labels):
    match = "'positiv' is not a label.*'negative', 'positive'. Did you mean 'positive'?"
    with pytest.raises(DataError, match=match):
        labels.read("positiv")


def test_a_single_label_is_refused():
    with pytest.raises(DataError, match="at least two labels.*only 'a'"):
        LabelField.fit(["a", "a"])


@pytest.fixture
def field():
    texts = ["a b c", "d"]
    return TextField(train_tokenizer(TokenizerConfig(kind="word"), texts), has_start=True)


def test_batches_keep_every_text_with_its_label(field):
    texts = [" ".join("abcd"[i % 4] for i in range(n)) for n in range(1, 9)]
    sources = field.read_all(texts)
    config = BatchConfig(max_tokens=30, max_length=20)
    batches = LabelledBatches(sources, list(range(8)), config, fields=(field,), seed=3)
    seen = {}
    for batch in batches.epoch(0):
        assert batch.num_target_tokens == len(batch.labels)
        for index, row in enumerate(batch.rows):
            seen[row] = int(batch.labels[index])
            ids = batch.source[index][batch.source_mask[index]].tolist()
            assert ids == sources[row]
    assert seen == {row: row for row in range(8)}
    assert batches.num_batches(0) == len(list(batches.epoch(0)))


def test_the_first_batches_are_skipped(field):
    sources = field.read_all(["a b", "b c", "d", "a"])
    config = BatchConfig(max_sentences=1)
    batches = LabelledBatches(sources, [0, 1, 0, 1], config, fields=(field,))
    whole, rest = list(batches.epoch(1)), list(batches.epoch(1, skip=1))
    assert [batch.rows for batch in rest] == [batch.rows for batch in whole[1:]]
    assert torch.equal(whole[1].labels, rest[0].labels)
