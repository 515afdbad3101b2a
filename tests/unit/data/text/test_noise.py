"""Noise on texts: how much of it there is, what it leaves, and that it can be made again."""

import numpy as np
import pytest

from regard.core.errors import ConfigError
from regard.data.batching import BatchConfig
from regard.data.text.corruption import CorruptedBatches
from regard.data.text.field import both_sides
from regard.data.text.noise import WordNoise, WordNoiseConfig
from regard.data.text.tokenizers import TokenizerConfig, with_mask
from regard.data.text.vocabulary import train_tokenizer

NUM = 300


@pytest.fixture(scope="module")
def tokenizer():
    words = " ".join(f"w{number}" for number in range(200))
    return train_tokenizer(with_mask(TokenizerConfig(kind="word")), [words])


@pytest.fixture(scope="module")
def texts(tokenizer):
    """Texts in which every token is another one, so that its place is known."""
    generator = np.random.default_rng(0)
    return [
        generator.permutation(np.arange(5, tokenizer.vocab_size))[:length].tolist()
        for length in generator.integers(1, 60, NUM)
    ]


def spoil(tokenizer, texts, epoch=0, seed=1, rows=None, **shares):
    noise = WordNoise(WordNoiseConfig(**shares), tokenizer, seed=seed)
    return noise.corrupt(texts, np.arange(len(texts)) if rows is None else rows, epoch=epoch)


def test_without_noise_texts_stay_as_they_are(tokenizer, texts):
    assert spoil(tokenizer, texts) == texts


def test_tokens_are_dropped_as_often_as_asked_and_the_rest_keeps_its_order(tokenizer, texts):
    spoilt = spoil(tokenizer, texts, drop=0.3)
    for before, after in zip(texts, spoilt, strict=True):
        assert after and after == [token for token in before if token in after]
    assert sum(map(len, spoilt)) / sum(map(len, texts)) == pytest.approx(0.7, abs=0.02)


def test_one_token_is_always_left(tokenizer):
    spoilt = spoil(tokenizer, [[7, 8, 9]] * NUM, drop=0.95)
    assert {len(text) for text in spoilt} >= {1, 2}
    assert {text[0] for text in spoilt} == {7, 8, 9}
    assert spoil(tokenizer, [[]], drop=0.9) == [[]]


def test_neighbours_change_places_pair_by_pair(tokenizer, texts):
    spoilt = spoil(tokenizer, texts, swap=0.4)
    swapped = pairs = 0
    for before, after in zip(texts, spoilt, strict=True):
        for place in range(0, len(before) - 1, 2):
            ours, theirs = after[place : place + 2], before[place : place + 2]
            assert ours in (theirs, theirs[::-1])
            swapped += ours != theirs
            pairs += 1
        if len(before) % 2:
            assert after[-1] == before[-1]
    assert swapped / pairs == pytest.approx(0.4, abs=0.03)


def test_hidden_tokens_stand_where_they_stood(tokenizer, texts):
    spoilt = spoil(tokenizer, texts, mask=0.2)
    hidden = 0
    for before, after in zip(texts, spoilt, strict=True):
        assert len(after) == len(before)
        differ = [ours for ours, theirs in zip(after, before, strict=True) if ours != theirs]
        assert set(differ) <= {tokenizer.mask}
        hidden += len(differ)
    assert hidden / sum(map(len, texts)) == pytest.approx(0.2, abs=0.02)


def test_noise_hangs_on_seed_epoch_and_number_alone(tokenizer, texts):
    shares = {"drop": 0.2, "swap": 0.2, "mask": 0.2}
    whole = spoil(tokenizer, texts, **shares)
    rows = np.array([8, 3])
    assert spoil(tokenizer, [texts[8], texts[3]], rows=rows, **shares) == [whole[8], whole[3]]
    assert spoil(tokenizer, texts, epoch=1, **shares) != whole
    assert spoil(tokenizer, texts, seed=2, **shares) != whole


def test_batches_spoil_sources_and_leave_targets(tokenizer, texts):
    fields = both_sides(tokenizer)
    noise = WordNoise(WordNoiseConfig(drop=0.3, mask=0.1), tokenizer, seed=1)
    batches = CorruptedBatches(
        [[*ids, tokenizer.eos] for ids in texts],
        [[tokenizer.sos, *ids, tokenizer.eos] for ids in texts],
        BatchConfig(max_tokens=500, max_length=100),
        change=noise.change,
        fields=(fields["source"], fields["target"]),
    )
    expected = noise.corrupt(texts, np.arange(NUM), epoch=3)
    seen = 0
    for batch in batches.epoch(3):
        for place, row in enumerate(batch.rows):
            source = batch.source[place][batch.source_mask[place]].tolist()
            target = batch.target[place][batch.target_mask[place]].tolist()
            assert source == [*expected[row], tokenizer.eos]
            assert target == [tokenizer.sos, *texts[row], tokenizer.eos]
            seen += 1
    assert seen == NUM


@pytest.mark.parametrize("name", ["drop", "swap", "mask"])
def test_shares_must_be_probabilities(name):
    with pytest.raises(ConfigError, match=rf"`{name}` must be between 0\.0 and 0\.95, but is 1\.5"):
        WordNoiseConfig(**{name: 1.5})
