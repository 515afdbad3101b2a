import os
import signal
import warnings

import torch

from regard.core import tensor_files
from regard.core.files import remove_leftovers
from regard.core.tensor_files import read_tensors, write_tensors

TENSORS = {"weight": torch.arange(6.0).view(2, 3)}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_tensors_round_trip_without_further_files(tmp_path):
    path = tmp_path / "a.safetensors"
    for factor in (1, 2):
        write_tensors(path, {"weight": factor * TENSORS["weight"]}, version=2)
        version, tensors = read_tensors(path, max_version=2)
        assert version == 2
        assert torch.equal(tensors["weight"], factor * TENSORS["weight"])
        assert names(tmp_path) == ["a.safetensors"]


def test_temporary_file_of_safetensors_is_removed_after_a_kill(tmp_path, monkeypatch):
    def save_half(tensors, path, metadata):
        # As safetensors 0.8 does: a temporary file beside the file, with a random name.
        path.with_name(".tmp3lplPw").write_bytes(b"half")
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(tensor_files, "save_file", save_half)
    (tmp_path / "a.safetensors").write_text("old")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads are idle
        child = os.fork()
    if not child:
        try:
            write_tensors(tmp_path / "a.safetensors", TENSORS, version=1)
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert len(names(tmp_path)) == 2
    remove_leftovers(tmp_path)
    assert names(tmp_path) == ["a.safetensors"]
    assert (tmp_path / "a.safetensors").read_text() == "old"
