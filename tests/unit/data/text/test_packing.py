import pytest

from regard.data.text.packing import PACKINGS, cut_windows
from regard.data.text.tokenizers import TokenizerConfig
from regard.data.text.vocabulary import train_tokenizer

LINES = [list(range(10, 10 + 7 * number)) for number in range(12)]


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(TokenizerConfig(kind="word", extra_tokens=("<mask>",)), ["a b c"])


def pack(kind, tokenizer, lines=LINES, seed=1):
    return PACKINGS[kind](lines, 16, tokenizer=tokenizer, seed=seed)


def plain(tokenizer, sequences):
    ends = (tokenizer.sos, tokenizer.eos)
    return [token for ids in sequences for token in ids if token not in ends]


@pytest.mark.parametrize("kind", PACKINGS)
def test_sequences_are_within_the_limit_and_have_start_and_end_tokens(kind, tokenizer):
    for ids in pack(kind, tokenizer).sequences:
        assert len(ids) <= 16
        assert (ids[0], ids[-1]) == (tokenizer.sos, tokenizer.eos)
        assert ids.count(tokenizer.eos) == (2 if kind in ("pairs", "swaps") else 1)


@pytest.mark.parametrize("kind", ["lines", "windows"])
def test_no_token_is_lost(kind, tokenizer):
    packed = pack(kind, tokenizer)
    assert plain(tokenizer, packed.sequences) == [token for line in LINES for token in line]


def test_all_windows_but_the_last_are_full(tokenizer):
    *full, _ = pack("windows", tokenizer).sequences
    assert {len(ids) for ids in full} == {16}


def halves(tokenizer, ids):
    border = ids.index(tokenizer.eos)
    return ids[1:border], ids[border + 1 : -1]


def test_consecutive_pairs_are_a_window_split_in_two(tokenizer):
    packed = pack("pairs", tokenizer)
    windows = cut_windows(LINES, 13)
    assert 0 < sum(packed.is_next) < len(windows)
    for ids, is_next, window in zip(packed.sequences, packed.is_next, windows, strict=True):
        first, second = halves(tokenizer, ids)
        assert first == window[: len(first)]
        assert (first + second == window) == is_next


def test_swapped_pairs_are_the_same_window_in_another_order(tokenizer):
    packed = pack("swaps", tokenizer)
    for ids, is_next, window in zip(
        packed.sequences, packed.is_next, cut_windows(LINES, 13), strict=True
    ):
        first, second = halves(tokenizer, ids)
        assert (first + second if is_next else second + first) == window


def test_about_half_of_the_pairs_are_consecutive(tokenizer):
    packed = pack("pairs", tokenizer, [list(range(10, 26000))])
    assert 0.45 < sum(packed.is_next) / len(packed.is_next) < 0.55


def test_another_seed_gives_other_pairs(tokenizer):
    assert pack("pairs", tokenizer).is_next != pack("pairs", tokenizer, seed=2).is_next


def test_empty_lines_are_dropped(tokenizer):
    assert pack("lines", tokenizer, [[], [10], []]).sequences == [[2, 10, 3]]
