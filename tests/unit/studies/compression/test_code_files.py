import numpy as np
import pytest

from regard.core.errors import DataError
from regard.studies.compression.code_files import HEAD_BYTES, read_codes, write_codes
from regard.studies.compression.range_coder import Frequencies

MAKER = b"maker-01"


@pytest.fixture
def tables():
    return [Frequencies([5, 1, 1]), Frequencies([1, 9]), Frequencies([1, 2, 3, 4])]


@pytest.fixture
def codes(tables):
    generator = np.random.default_rng(0)
    return np.stack([generator.integers(0, len(table), 40) for table in tables], axis=1)


def test_codes_come_back(tmp_path, codes, tables):
    path = tmp_path / "codes.bin"
    size = write_codes(path, codes, tables, maker=MAKER)
    assert size == path.stat().st_size
    assert (read_codes(path, tables, maker=MAKER) == codes).all()


def test_no_codes_take_a_head_alone(tmp_path, codes, tables):
    path = tmp_path / "codes.bin"
    assert write_codes(path, codes[:0], tables, maker=MAKER) == HEAD_BYTES
    assert read_codes(path, tables, maker=MAKER).shape == (0, 3)


def test_every_cut_and_every_changed_byte_is_noticed(tmp_path, codes, tables):
    path = tmp_path / "codes.bin"
    write_codes(path, codes, tables, maker=MAKER)
    whole = path.read_bytes()
    changed = [whole[:end] for end in range(len(whole))]
    changed += [
        whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
        for place in range(len(whole))
    ]
    for data in changed:
        path.write_bytes(data)
        with pytest.raises(DataError):
            read_codes(path, tables, maker=MAKER)


def test_bad_files_are_told_apart(tmp_path, codes, tables):
    path = tmp_path / "codes.bin"
    write_codes(path, codes, tables, maker=MAKER)
    whole = path.read_bytes()
    with pytest.raises(DataError, match="written by another model"):
        read_codes(path, tables, maker=b"maker-02")
    path.write_bytes(whole[:-1])
    with pytest.raises(DataError, match="damaged or cut short"):
        read_codes(path, tables, maker=MAKER)
    path.write_bytes(whole[:10])
    with pytest.raises(DataError, match="ends within its first 25 bytes"):
        read_codes(path, tables, maker=MAKER)
    path.write_bytes(whole[:4] + b"\x07" + whole[5:])
    with pytest.raises(DataError, match="was written in version 7"):
        read_codes(path, tables, maker=MAKER)
    path.write_bytes(b"PNG" + whole)
    with pytest.raises(DataError, match="holds no codes"):
        read_codes(path, tables, maker=MAKER)
    with pytest.raises(DataError, match="cannot be read: No such file"):
        read_codes(tmp_path / "none", tables, maker=MAKER)
    with pytest.raises(DataError, match="a table for each of 3 columns"):
        write_codes(path, codes, tables[:2], maker=MAKER)
