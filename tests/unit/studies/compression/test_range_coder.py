from itertools import repeat

import numpy as np
import pytest

from regard.core.errors import DataError
from regard.studies.compression.range_coder import (
    HEADER_BYTES,
    TOTAL,
    Frequencies,
    decode,
    encode,
    read_codes,
    write_codes,
)


def round_trip(symbols, tables):
    data = encode(symbols, tables)
    return list(decode(data, tables[: len(symbols)])), len(data)


@pytest.mark.parametrize("seed", range(5))
def test_round_trip_with_tables_of_any_size(seed):
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, 400, 300)
    tables = [Frequencies(generator.integers(0, 50, size).tolist()) for size in sizes]
    symbols = [int(generator.integers(size)) for size in sizes]
    assert round_trip(symbols, tables)[0] == symbols


@pytest.mark.parametrize(
    ("symbols", "counts"),
    [
        ([], [1]),
        ([0] * 50, [9]),
        ([0] * 3000, [10**9, 0]),
        ([1] * 300, [10**9, 0]),
        ([0, 1] * 500, [1, 1]),
        # The upper end of the interval repeatedly: every carry.
        ([255] * 400, [1] * 256),
        ([0] * 400, [1] * 256),
        ([3, 0, 0, 3] * 200, [1, 10**6, 10**6, 1]),
    ],
)
def test_round_trip_of_degenerate_messages(symbols, counts):
    assert round_trip(symbols, [Frequencies(counts)] * len(symbols))[0] == symbols


def test_carry_propagates_through_full_bytes():
    # Messages of nearly certain symbols stay near the upper end of the interval.
    generator = np.random.default_rng(0)
    table = Frequencies([1, 10**6])
    for _ in range(200):
        symbols = (generator.random(60) < 0.95).astype(int).tolist()
        assert round_trip(symbols, [table] * 60)[0] == symbols


@pytest.mark.parametrize("probability", [0.5, 0.9, 0.99, 0.9999])
def test_size_is_within_a_hundredth_of_the_entropy(probability):
    generator = np.random.default_rng(1)
    symbols = (generator.random(6000) > probability).astype(int)
    counts = np.bincount(symbols, minlength=2)
    shares = counts[counts > 0] / len(symbols)
    entropy = -len(symbols) * (shares * np.log2(shares)).sum() / 8
    table = Frequencies(counts.tolist())
    _, size = round_trip(symbols.tolist(), [table] * len(symbols))
    assert size <= 1.01 * entropy + 4
    # The size also equals the sum of the bits of each symbol.
    assert size == pytest.approx(table.bits[symbols].sum() / 8, abs=2)


def test_frequencies_sum_to_the_total_and_are_positive():
    for counts in ([0, 0, 0], [10**12, 0, 1], [1] * 1000, [7]):
        table = Frequencies(counts)
        assert (table.starts[0], table.starts[-1], len(table)) == (0, TOTAL, len(counts))
        assert all(np.diff(table.starts) >= 1)


def test_invalid_symbols_and_counts_are_refused():
    with pytest.raises(DataError, match="Symbols must be from 0 to 1, but one is 2"):
        encode([2], [Frequencies([1, 1])])
    with pytest.raises(DataError, match="`counts` must hold 1 to"):
        Frequencies([])
    with pytest.raises(DataError, match="the smallest of them -1"):
        Frequencies([3, -1])


def test_invalid_bytes_are_refused():
    table = Frequencies([1, 1, 1])
    with pytest.raises(DataError, match="The codes are damaged"):
        list(decode(b"\xff" * 9, repeat(table, 200)))


MODEL_ID = b"model-01"


@pytest.fixture
def tables():
    return [Frequencies([5, 1, 1]), Frequencies([1, 9]), Frequencies([1, 2, 3, 4])]


@pytest.fixture
def codes(tables):
    generator = np.random.default_rng(0)
    return np.stack([generator.integers(0, len(table), 40) for table in tables], axis=1)


def test_codes_round_trip_through_a_file(tmp_path, codes, tables):
    path = tmp_path / "codes.bin"
    size = write_codes(path, codes, tables, model_id=MODEL_ID)
    assert size == path.stat().st_size
    assert (read_codes(path, tables, model_id=MODEL_ID) == codes).all()


def test_file_without_codes_is_only_a_header(tmp_path, codes, tables):
    path = tmp_path / "codes.bin"
    assert write_codes(path, codes[:0], tables, model_id=MODEL_ID) == HEADER_BYTES
    assert read_codes(path, tables, model_id=MODEL_ID).shape == (0, 3)


def test_truncated_and_changed_files_are_refused(tmp_path, codes, tables):
    path = tmp_path / "codes.bin"
    write_codes(path, codes, tables, model_id=MODEL_ID)
    content = path.read_bytes()
    changed = [content[:end] for end in range(len(content))]
    changed += [
        content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]
        for position in range(len(content))
    ]
    for data in changed:
        path.write_bytes(data)
        with pytest.raises(DataError):
            read_codes(path, tables, model_id=MODEL_ID)


def test_invalid_files_have_their_own_messages(tmp_path, codes, tables):
    path = tmp_path / "codes.bin"
    write_codes(path, codes, tables, model_id=MODEL_ID)
    content = path.read_bytes()
    with pytest.raises(DataError, match="written by another model"):
        read_codes(path, tables, model_id=b"model-02")
    path.write_bytes(content[:-1])
    with pytest.raises(DataError, match="damaged or truncated"):
        read_codes(path, tables, model_id=MODEL_ID)
    path.write_bytes(content[:10])
    with pytest.raises(DataError, match="ends within its header of 25 bytes"):
        read_codes(path, tables, model_id=MODEL_ID)
    path.write_bytes(content[:4] + b"\x07" + content[5:])
    with pytest.raises(DataError, match="was written in version 7"):
        read_codes(path, tables, model_id=MODEL_ID)
    path.write_bytes(b"PNG" + content)
    with pytest.raises(DataError, match="holds no codes"):
        read_codes(path, tables, model_id=MODEL_ID)
    with pytest.raises(DataError, match="cannot be read: No such file"):
        read_codes(tmp_path / "none", tables, model_id=MODEL_ID)
    with pytest.raises(DataError, match="a table for each of the 3 columns, but there are 2"):
        write_codes(path, codes, tables[:2], model_id=MODEL_ID)
