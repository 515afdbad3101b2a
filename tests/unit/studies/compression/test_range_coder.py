from itertools import repeat

import numpy as np
import pytest

from regard.core.errors import DataError
from regard.studies.compression.range_coder import TOTAL, Frequencies, decode, encode


def there_and_back(symbols, tables):
    data = encode(symbols, tables)
    return list(decode(data, tables[: len(symbols)])), len(data)


@pytest.mark.parametrize("seed", range(5))
def test_random_symbols_come_back_in_tables_of_any_size(seed):
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, 400, 300)
    tables = [Frequencies(generator.integers(0, 50, size).tolist()) for size in sizes]
    symbols = [int(generator.integers(size)) for size in sizes]
    assert there_and_back(symbols, tables)[0] == symbols


@pytest.mark.parametrize(
    ("symbols", "counts"),
    [
        ([], [1]),
        ([0] * 50, [9]),
        ([0] * 3000, [10**9, 0]),
        ([1] * 300, [10**9, 0]),
        ([0, 1] * 500, [1, 1]),
        # The upper end of the interval, again and again: every carry there is.
        ([255] * 400, [1] * 256),
        ([0] * 400, [1] * 256),
        ([3, 0, 0, 3] * 200, [1, 10**6, 10**6, 1]),
    ],
)
def test_degenerate_messages_come_back(symbols, counts):
    assert there_and_back(symbols, [Frequencies(counts)] * len(symbols))[0] == symbols


def test_carry_runs_through_bytes_that_are_full():
    # Most messages of nearly certain symbols stay near the interval's upper end.
    generator = np.random.default_rng(0)
    table = Frequencies([1, 10**6])
    for _ in range(200):
        symbols = (generator.random(60) < 0.95).astype(int).tolist()
        assert there_and_back(symbols, [table] * 60)[0] == symbols


@pytest.mark.parametrize("chance", [0.5, 0.9, 0.99, 0.9999])
def test_size_is_within_a_hundredth_of_the_entropy(chance):
    generator = np.random.default_rng(1)
    symbols = (generator.random(6000) > chance).astype(int)
    counts = np.bincount(symbols, minlength=2)
    shares = counts[counts > 0] / len(symbols)
    entropy = -len(symbols) * (shares * np.log2(shares)).sum() / 8
    table = Frequencies(counts.tolist())
    _, size = there_and_back(symbols.tolist(), [table] * len(symbols))
    assert size <= 1.01 * entropy + 4
    # A second way to the size: what the table says each symbol takes.
    assert size == pytest.approx(table.bits[symbols].sum() / 8, abs=2)


def test_frequencies_fill_the_whole_and_leave_nobody_out():
    for counts in ([0, 0, 0], [10**12, 0, 1], [1] * 1000, [7]):
        table = Frequencies(counts)
        assert (table.starts[0], table.starts[-1], len(table)) == (0, TOTAL, len(counts))
        assert all(np.diff(table.starts) >= 1)


def test_bad_symbols_and_counts_are_named():
    with pytest.raises(DataError, match="Symbols must be from 0 to 1, but one is 2"):
        encode([2], [Frequencies([1, 1])])
    with pytest.raises(DataError, match="`counts` must hold 1 to"):
        Frequencies([])
    with pytest.raises(DataError, match="the least of them -1"):
        Frequencies([3, -1])


def test_bytes_that_nobody_wrote_are_refused_or_read_but_never_hang():
    table = Frequencies([1, 1, 1])
    with pytest.raises(DataError, match="beyond every symbol"):
        list(decode(b"\xff" * 9, repeat(table, 200)))
