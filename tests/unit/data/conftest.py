import gzip

import pytest


@pytest.fixture
def write(tmp_path):
    """A file of a name, compressed where the name says so, with a text or bytes."""

    def write(name, content):
        path = tmp_path / name
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write
