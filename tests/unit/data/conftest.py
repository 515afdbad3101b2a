import gzip

import pytest


@pytest.fixture
def write(tmp_path):
    """Function that writes a file, compressed if its name ends in .gz."""

    def write(name, content):
        path = tmp_path / name
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write
