"""Noise on texts: its amount, the remaining tokens and reproducibility."""

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
    """Texts of distinct tokens, so that their positions are known."""
    generator = np.random.default_rng(0)
    return [
        generator.permutation(np.arange(5, tokenizer.vocab_size))[:length].tolist()
        for length in generator.integers(1, 60, NUM)
    ]


def corrupt(tokenizer, texts, epoch=0, seed=1, rows=None, **shares):
    noise = WordNoise(WordNoiseConfig(**shares), tokenizer, seed=seed)
    return noise.corrupt(texts, np.arange(len(texts)) if rows is None else rows, epoch=epoch)


def test_without_noise_texts_are_unchanged(tokenizer, texts):
    assert corrupt(tokenizer, texts) == texts


def test_tokens_are_dropped_with_the_given_probability_and_the_rest_keeps_its_order(
    tokenizer, texts
):
    noisy = corrupt(tokenizer, texts, drop=0.3)
    for before, after in zip(texts, noisy, strict=True):
        assert after and after == [token for token in before if token in after]
    assert sum(map(len, noisy)) / sum(map(len, texts)) == pytest.approx(0.7, abs=0.02)


def test_at_least_one_token_is_kept(tokenizer):
    noisy = corrupt(tokenizer, [[7, 8, 9]] * NUM, drop=0.95)
    assert {len(text) for text in noisy} >= {1, 2}
    assert {text[0] for text in noisy} == {7, 8, 9}
    assert corrupt(tokenizer, [[]], drop=0.9) == [[]]


def test_neighbours_are_swapped_pair_by_pair(tokenizer, texts):
    noisy = corrupt(tokenizer, texts, swap=0.4)
    swapped = pairs = 0
    for before, after in zip(texts, noisy, strict=True):
        for position in range(0, len(before) - 1, 2):
            ours, theirs = after[position : position + 2], before[position : position + 2]
            assert ours in (theirs, theirs[::-1])
            swapped += ours != theirs
            pairs += 1
        if len(before) % 2:
            assert after[-1] == before[-1]
    assert swapped / pairs == pytest.approx(0.4, abs=0.03)


def test_masked_tokens_keep_their_positions(tokenizer, texts):
    noisy = corrupt(tokenizer, texts, mask=0.2)
    num_masked = 0
    for before, after in zip(texts, noisy, strict=True):
        assert len(after) == len(before)
        differ = [ours for ours, theirs in zip(after, before, strict=True) if ours != theirs]
        assert set(differ) <= {tokenizer.mask}
        num_masked += len(differ)
    assert num_masked / sum(map(len, texts)) == pytest.approx(0.2, abs=0.02)


def test_noise_depends_only_on_seed_epoch_and_number(tokenizer, texts):
    shares = {"drop": 0.2, "swap": 0.2, "mask": 0.2}
    whole = corrupt(tokenizer, texts, **shares)
    rows = np.array([8, 3])
    assert corrupt(tokenizer, [texts[8], texts[3]], rows=rows, **shares) == [whole[8], whole[3]]
    assert corrupt(tokenizer, texts, epoch=1, **shares) != whole
    assert corrupt(tokenizer, texts, seed=2, **shares) != whole


def test_batches_have_noisy_sources_and_unchanged_targets(tokenizer, texts):
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
        for position, row in enumerate(batch.rows):
            source = batch.source[position][batch.source_mask[position]].tolist()
            target = batch.target[position][batch.target_mask[position]].tolist()
            assert source == [*expected[row], tokenizer.eos]
            assert target == [tokenizer.sos, *texts[row], tokenizer.eos]
            seen += 1
    assert seen == NUM


@pytest.mark.parametrize("name", ["drop", "swap", "mask"])
def test_shares_must_be_probabilities(name):
    with pytest.raises(ConfigError, match=rf"`{name}` must be between 0\.0 and 0\.95, but is 1\.5"):
        WordNoiseConfig(**{name: 1.5})
