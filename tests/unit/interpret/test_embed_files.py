import numpy as np
import pytest
from safetensors import safe_open

from regard.core.errors import ConfigError, DataError
from regard.interpret.embed import VECTORS as NAME
from regard.interpret.embed import save_vectors

VECTORS = np.arange(6, dtype=np.float32).reshape(3, 2)


def test_npy_holds_the_vectors(tmp_path):
    save_vectors(tmp_path / "new" / "x.npy", VECTORS, {"seed": 1})
    np.testing.assert_array_equal(np.load(tmp_path / "new" / "x.npy"), VECTORS)


def test_safetensors_holds_the_vectors_and_their_metadata(tmp_path):
    save_vectors(tmp_path / "x.safetensors", VECTORS, {"command": "regard embed", "layer": 2})
    with safe_open(tmp_path / "x.safetensors", "numpy") as opened:
        np.testing.assert_array_equal(opened.get_tensor(NAME), VECTORS)
        assert opened.metadata() == {"command": "regard embed", "layer": "2"}


def test_another_suffix_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"must end in \.npy or \.safetensors, but is '.*x\.csv'"):
        save_vectors(tmp_path / "x.csv", VECTORS, {})


def test_file_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(DataError, match="cannot be written"):
        save_vectors(tmp_path / "file" / "x.npy", VECTORS, {})
