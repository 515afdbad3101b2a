import numpy as np
import pytest

from regard.core.errors import ConfigError
from regard.data.text.masking import (
    MASKINGS,
    SpanMasking,
    SpanMaskingConfig,
    TokenMasking,
    TokenMaskingConfig,
)
from regard.data.text.tokenizers import TokenizerConfig
from regard.data.text.vocabulary import train_tokenizer

CONFIGS = {"tokens": TokenMaskingConfig(), "spans": SpanMaskingConfig()}


@pytest.fixture(scope="module")
def tokenizer():
    words = [f"{first}{second}ing" for first in "abcdefgh" for second in "klmnop"]
    config = TokenizerConfig(kind="wordpiece", vocab_size=60, extra_tokens=("<mask>",))
    return train_tokenizer(config, [" ".join(words)])


@pytest.fixture(scope="module")
def values(tokenizer):
    """2,000 texts of 62 tokens, with start and end tokens; the last are padded."""
    found = np.random.default_rng(0).integers(5, tokenizer.vocab_size, (2000, 62))
    found[:, 0], found[:, -1] = tokenizer.sos, tokenizer.eos
    found[1000:, 40], found[1000:, 41:] = tokenizer.eos, tokenizer.pad
    return found


@pytest.fixture(params=CONFIGS.values(), ids=CONFIGS)
def masking(request, tokenizer):
    return MASKINGS[type(request.param)](request.param, tokenizer, seed=1)


def mask(masking, values, rows=None, epoch=0):
    return masking.mask(values, np.arange(len(values)) if rows is None else rows, epoch=epoch)


def test_every_masking_is_tested():
    assert {type(config) for config in CONFIGS.values()} == set(MASKINGS)


def test_the_share_is_kept_in_every_text(masking, values):
    num_masked = mask(masking, values).is_masked.sum(1)
    assert set(num_masked[:1000]) == {9}
    assert set(num_masked[1000:]) == {6}


def test_80_percent_are_replaced_by_the_mask_10_by_random_tokens_and_10_kept(
    masking, values, tokenizer
):
    masked = mask(masking, values)
    shown, true = masked.values[masked.is_masked], values[masked.is_masked]
    is_masked = shown == tokenizer.mask
    assert is_masked.mean() == pytest.approx(0.8, abs=0.02)
    # A random token is sometimes the true one.
    assert (shown == true).mean() == pytest.approx(0.1 + 0.1 / 55, abs=0.02)
    assert (shown[~is_masked] != true[~is_masked]).mean() == pytest.approx(0.5, abs=0.06)


def test_other_tokens_are_unchanged(masking, values):
    masked = mask(masking, values)
    assert (masked.values == values)[~masked.is_masked].all()


def test_special_tokens_are_neither_masked_nor_sampled(masking, values, tokenizer):
    special = [tokenizer.pad, tokenizer.sos, tokenizer.eos, tokenizer.unk]
    masked = mask(masking, values)
    assert not np.isin(values[masked.is_masked], special).any()
    assert not np.isin(masked.values[masked.is_masked], special).any()


def test_masking_depends_on_the_text_not_on_its_batch(masking, values):
    whole = mask(masking, values[:50])
    rows = np.array([31, 7])
    alone = mask(masking, values[rows], rows)
    assert (alone.values == whole.values[rows]).all()
    assert (alone.is_masked == whole.is_masked[rows]).all()


def test_padding_does_not_change_the_masked_tokens(masking, values):
    rows = np.arange(1000, 1020)
    whole, cut = mask(masking, values[rows], rows), mask(masking, values[rows, :41], rows)
    assert (whole.is_masked[:, :41] == cut.is_masked).all()
    assert (whole.values[:, :41] == cut.values).all()


def test_dynamic_masking_masks_other_tokens_in_another_epoch(masking, values):
    assert (mask(masking, values).is_masked != mask(masking, values, epoch=1).is_masked).any()


@pytest.mark.parametrize("kind", CONFIGS)
def test_static_masking_masks_the_same_tokens_in_every_epoch(kind, tokenizer, values):
    config = type(CONFIGS[kind])(is_dynamic=False)
    masking = MASKINGS[type(config)](config, tokenizer, seed=1)
    first, second = mask(masking, values), mask(masking, values, epoch=5)
    assert (first.is_masked == second.is_masked).all()
    assert (first.values == second.values).all()


def test_another_seed_masks_other_tokens(tokenizer, values):
    one, two = (TokenMasking(TokenMaskingConfig(), tokenizer, seed=seed) for seed in (1, 2))
    assert (mask(one, values).is_masked != mask(two, values).is_masked).any()


def test_a_text_of_special_tokens_has_no_masked_tokens(masking, tokenizer):
    masked = mask(masking, np.array([[tokenizer.sos, tokenizer.unk, tokenizer.eos]]))
    assert not masked.is_masked.any()


def run_lengths(is_masked):
    lengths = []
    for row in is_masked:
        bounds = np.flatnonzero(np.diff(np.concatenate([[False], row, [False]])))
        lengths += (bounds[1::2] - bounds[::2]).tolist()
    return lengths


def test_spans_are_longer_than_single_tokens(tokenizer, values):
    config = SpanMaskingConfig(is_whole_words=False)
    spans = run_lengths(mask(SpanMasking(config, tokenizer, seed=1), values).is_masked)
    tokens = run_lengths(
        mask(TokenMasking(TokenMaskingConfig(), tokenizer, seed=1), values).is_masked
    )
    assert np.mean(tokens) < 1.3
    assert 2.5 < np.mean(spans) < 4.5


def test_a_span_starts_with_a_word(tokenizer):
    ids = tokenizer.encode("akinging bling coping demoing")
    values = np.array([[tokenizer.sos, *ids, tokenizer.eos]] * 300)
    begins = np.array([*tokenizer.word_starts(), True])
    config = SpanMaskingConfig(share=0.3, stop=1.0)
    masking = SpanMasking(config, tokenizer, seed=1)
    is_first = np.diff(mask(masking, values).is_masked.astype(int), prepend=0) == 1
    assert is_first.any()
    assert begins[values[is_first]].all()


def test_all_tokens_of_a_span_are_replaced_in_the_same_way(tokenizer, values):
    config = SpanMaskingConfig(stop=0.01, max_words=60, is_whole_words=False, random_share=0.0)
    masked = mask(SpanMasking(config, tokenizer, seed=1), values[:200])
    is_masked = masked.values == tokenizer.mask
    shares = [is_masked[row][masked.is_masked[row]].mean() for row in range(200)]
    # Nearly every text has a single span, which is masked as a whole or not at all.
    assert np.mean([share in (0.0, 1.0) for share in shares]) > 0.75


def test_shares_beyond_one_are_refused():
    with pytest.raises(ConfigError, match=r"`random_share` must be at most 1 - `masked_share`"):
        TokenMaskingConfig(masked_share=0.8, random_share=0.3)


def test_a_vocabulary_without_a_mask_is_refused():
    plain = train_tokenizer(TokenizerConfig(kind="word"), ["a b c"])
    with pytest.raises(ConfigError, match=r"no mask token"):
        TokenMasking(TokenMaskingConfig(), plain, seed=1)
