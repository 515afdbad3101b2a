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
    """2,000 texts of 62 tokens, ends included, the last ones with padding."""
    found = np.random.default_rng(0).integers(5, tokenizer.vocab_size, (2000, 62))
    found[:, 0], found[:, -1] = tokenizer.sos, tokenizer.eos
    found[1000:, 40], found[1000:, 41:] = tokenizer.eos, tokenizer.pad
    return found


@pytest.fixture(params=CONFIGS.values(), ids=CONFIGS)
def masking(request, tokenizer):
    return MASKINGS[type(request.param)](request.param, tokenizer, seed=1)


def hide(masking, values, rows=None, epoch=0):
    return masking.hide(values, np.arange(len(values)) if rows is None else rows, epoch=epoch)


def test_every_masking_is_tested():
    assert {type(config) for config in CONFIGS.values()} == set(MASKINGS)


def test_the_share_is_kept_in_every_text(masking, values):
    hidden = hide(masking, values).hidden.sum(1)
    assert set(hidden[:1000]) == {9}
    assert set(hidden[1000:]) == {6}


def test_of_hidden_tokens_80_percent_are_masked_and_10_each_random_and_shown(
    masking, values, tokenizer
):
    masked = hide(masking, values)
    shown, true = masked.values[masked.hidden], values[masked.hidden]
    is_masked = shown == tokenizer.mask
    assert is_masked.mean() == pytest.approx(0.8, abs=0.02)
    # A random token is the true one now and then.
    assert (shown == true).mean() == pytest.approx(0.1 + 0.1 / 55, abs=0.02)
    assert (shown[~is_masked] != true[~is_masked]).mean() == pytest.approx(0.5, abs=0.06)


def test_what_is_not_hidden_is_shown_as_it_is(masking, values):
    masked = hide(masking, values)
    assert (masked.values == values)[~masked.hidden].all()


def test_special_tokens_are_neither_hidden_nor_drawn(masking, values, tokenizer):
    special = [tokenizer.pad, tokenizer.sos, tokenizer.eos, tokenizer.unk]
    masked = hide(masking, values)
    assert not np.isin(values[masked.hidden], special).any()
    assert not np.isin(masked.values[masked.hidden], special).any()


def test_a_draw_hangs_on_the_text_alone_not_on_its_batch(masking, values):
    whole = hide(masking, values[:50])
    rows = np.array([31, 7])
    alone = hide(masking, values[rows], rows)
    assert (alone.values == whole.values[rows]).all()
    assert (alone.hidden == whole.hidden[rows]).all()


def test_padding_does_not_change_what_is_hidden(masking, values):
    rows = np.arange(1000, 1020)
    whole, cut = hide(masking, values[rows], rows), hide(masking, values[rows, :41], rows)
    assert (whole.hidden[:, :41] == cut.hidden).all()
    assert (whole.values[:, :41] == cut.values).all()


def test_dynamic_masking_hides_others_in_another_epoch(masking, values):
    assert (hide(masking, values).hidden != hide(masking, values, epoch=1).hidden).any()


@pytest.mark.parametrize("kind", CONFIGS)
def test_static_masking_hides_the_same_in_every_epoch(kind, tokenizer, values):
    config = type(CONFIGS[kind])(is_dynamic=False)
    masking = MASKINGS[type(config)](config, tokenizer, seed=1)
    first, second = hide(masking, values), hide(masking, values, epoch=5)
    assert (first.hidden == second.hidden).all()
    assert (first.values == second.values).all()


def test_another_seed_hides_others(tokenizer, values):
    one, two = (TokenMasking(TokenMaskingConfig(), tokenizer, seed=seed) for seed in (1, 2))
    assert (hide(one, values).hidden != hide(two, values).hidden).any()


def test_a_text_of_special_tokens_alone_has_nothing_to_hide(masking, tokenizer):
    masked = hide(masking, np.array([[tokenizer.sos, tokenizer.unk, tokenizer.eos]]))
    assert not masked.hidden.any()


def run_lengths(hidden):
    lengths = []
    for row in hidden:
        bounds = np.flatnonzero(np.diff(np.concatenate([[False], row, [False]])))
        lengths += (bounds[1::2] - bounds[::2]).tolist()
    return lengths


def test_spans_are_longer_than_single_tokens(tokenizer, values):
    config = SpanMaskingConfig(is_whole_words=False)
    spans = run_lengths(hide(SpanMasking(config, tokenizer, seed=1), values).hidden)
    tokens = run_lengths(hide(TokenMasking(TokenMaskingConfig(), tokenizer, seed=1), values).hidden)
    assert np.mean(tokens) < 1.3
    assert 2.5 < np.mean(spans) < 4.5


def test_a_span_begins_with_a_word(tokenizer):
    ids = tokenizer.encode("akinging bling coping demoing")
    values = np.array([[tokenizer.sos, *ids, tokenizer.eos]] * 300)
    begins = np.array([*tokenizer.word_beginnings(), True])
    config = SpanMaskingConfig(share=0.3, stop=1.0)
    masking = SpanMasking(config, tokenizer, seed=1)
    is_first = np.diff(hide(masking, values).hidden.astype(int), prepend=0) == 1
    assert is_first.any()
    assert begins[values[is_first]].all()


def test_all_tokens_of_a_span_share_its_fate(tokenizer, values):
    config = SpanMaskingConfig(stop=0.01, max_words=60, is_whole_words=False, random_share=0.0)
    masked = hide(SpanMasking(config, tokenizer, seed=1), values[:200])
    is_masked = masked.values == tokenizer.mask
    shares = [is_masked[row][masked.hidden[row]].mean() for row in range(200)]
    # Nearly every text has a single span, which is masked as a whole or not at all.
    assert np.mean([share in (0.0, 1.0) for share in shares]) > 0.75


def test_shares_beyond_one_are_refused():
    with pytest.raises(ConfigError, match=r"`random_share` must be at most 1 - `masked_share`"):
        TokenMaskingConfig(masked_share=0.8, random_share=0.3)


def test_a_vocabulary_without_a_mask_is_refused():
    plain = train_tokenizer(TokenizerConfig(kind="word"), ["a b c"])
    with pytest.raises(ConfigError, match=r"no token that hides another"):
        TokenMasking(TokenMaskingConfig(), plain, seed=1)
