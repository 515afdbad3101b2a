"""Batches of images with target images."""

import numpy as np
import pytest

from regard.core.errors import DataError
from regard.data.batching import BatchConfig
from regard.data.image.field import ImageConfig, ImageField
from regard.data.image.pairs import ImagePairs


def build(num, *, is_shuffled, size=3):
    field = ImageField(ImageConfig(size=2, channels=1), [0.0], [1.0])
    sources = [np.full((1, 1, 2, 2), number, np.uint8) for number in range(num)]
    targets = [100 + source for source in sources]
    config = BatchConfig(max_sentences=size)
    return ImagePairs(sources, targets, config, fields=(field, field), is_shuffled=is_shuffled)


def test_every_source_is_batched_with_its_target():
    pairs = build(6, is_shuffled=True)
    seen = []
    for batch in pairs.epoch(0):
        assert batch.source[:, 0, 0, 0].tolist() == list(batch.rows)
        assert (batch.labels == batch.source + 100).all()
        assert batch.num_target_tokens == len(batch.rows)
        seen += batch.rows
    assert sorted(seen) == list(range(6)) and pairs.num_batches(0) == 2


def test_skipped_batches_are_the_first():
    pairs = build(6, is_shuffled=True)
    whole = [batch.rows for batch in pairs.epoch(1)]
    assert [batch.rows for batch in pairs.epoch(1, skip=1)] == whole[1:]


def test_batches_of_one_image_are_left_out_of_training_only():
    pairs = build(7, is_shuffled=True)
    assert [len(batch.rows) for batch in pairs.epoch(0)] == [3, 3] and pairs.num_batches(0) == 2
    alone = build(3, is_shuffled=True, size=1)
    assert [len(batch.rows) for batch in alone.epoch(0)] == [1, 1, 1]
    held_out = build(7, is_shuffled=False)
    assert sorted(row for batch in held_out.epoch(0) for row in batch.rows) == list(range(7))


def test_training_on_one_image_is_refused():
    with pytest.raises(DataError, match="must be two images to learn from, but there are 1"):
        build(1, is_shuffled=True)
