import collections
import pickle
import warnings
import zipfile

import pytest
import torch
from torch import nn

from regard.core.errors import CheckpointError
from regard.interop.huggingface.torch_file import read_torch_file

TENSORS = {
    "matrix": torch.arange(6.0).view(2, 3),
    "half": torch.tensor([0.5, -1.0], dtype=torch.float16),
    "brain": torch.tensor([0.5, -1.0], dtype=torch.bfloat16),
    "numbers": torch.tensor([[1], [-(2**40)]]),
    "scalar": torch.tensor(3.5),
    "empty": torch.zeros(0, 4),
}


@pytest.fixture
def write(tmp_path):
    def save(value, *, is_old=False):
        path = tmp_path / "pytorch_model.bin"
        torch.save(value, path, _use_new_zipfile_serialization=not is_old)
        return path

    return save


@pytest.mark.parametrize("is_old", [False, True])
def test_tensors_are_those_that_torch_saved(write, is_old):
    found = read_torch_file(write(TENSORS, is_old=is_old))
    assert found.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)


@pytest.mark.parametrize("is_old", [False, True])
def test_views_and_shared_storages_are_read(write, is_old):
    whole = torch.arange(12.0).view(3, 4)
    views = collections.OrderedDict(whole=whole, part=whole[1:, 2], turned=whole.T)
    found = read_torch_file(write(views, is_old=is_old))
    assert all(torch.equal(found[name], tensor) for name, tensor in views.items())


@pytest.mark.parametrize("is_old", [False, True])
def test_weights_of_a_module_are_read(write, is_old):
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    found = read_torch_file(write(model.state_dict(), is_old=is_old))
    assert found.keys() == model.state_dict().keys()
    assert torch.equal(found["0.weight"], model[0].weight)


class Command:
    def __reduce__(self):
        return print, ("run",)


@pytest.mark.parametrize("is_old", [False, True])
@pytest.mark.parametrize(
    "value",
    [Command(), {"a": Command()}, nn.Linear(1, 1), {"a": 1}, [torch.ones(1)], {1: torch.ones(1)}],
    ids=["command", "command inside", "module", "number", "list", "number as name"],
)
def test_all_but_tensors_by_name_is_refused_and_not_run(write, capsys, value, is_old):
    with pytest.raises(CheckpointError, match="must hold tensors by name and nothing else, but do"):
        read_torch_file(write(value, is_old=is_old))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("is_old", [False, True])
def test_every_truncated_file_is_refused(write, is_old):
    path = write({"a": torch.ones(4)}, is_old=is_old)
    data = path.read_bytes()
    for end in range(0, len(data), 7):
        path.write_bytes(data[:end])
        with pytest.raises(CheckpointError):
            read_torch_file(path)


@pytest.mark.parametrize(
    ("size", "stride", "offset"),
    [((5,), (1,), 0), ((4,), (1,), 1), ((10**12,), (0,), 0), ((2,), (-1,), 3), ((2,), (1, 1), 0)],
    ids=["too long", "offset", "repeated", "backwards", "two strides"],
)
def test_tensor_beyond_its_storage_is_refused(write, size, stride, offset):
    class Outside:
        def __reduce__(self):
            storage = torch.ones(4).storage()
            return torch._utils._rebuild_tensor_v2, (storage, offset, size, stride, False, {})

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about typed storages, once per process
        path = write({"a": Outside()})
    with pytest.raises(CheckpointError, match="must hold tensors by name"):
        read_torch_file(path)


def test_compressed_archive_is_refused(tmp_path):
    path = tmp_path / "pytorch_model.bin"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model/data.pkl", pickle.dumps({}, protocol=2))
    with pytest.raises(CheckpointError, match="a member is compressed"):
        read_torch_file(path)
