import random

import pytest
import torch

from regard.core import device as device_module
from regard.core.device import describe_hardware, find_device, find_dtype, seed_everything
from regard.core.errors import ConfigError

CPU = torch.device("cpu")


@pytest.mark.parametrize(("has_gpu", "name"), [(True, "cuda"), (False, "cpu")])
def test_auto_selects_a_gpu_if_available(monkeypatch, has_gpu, name):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_gpu)
    assert find_device("auto").type == name


def test_named_device_is_returned(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert find_device("cuda:1") == torch.device("cuda", 1)
    assert find_device("cpu") == CPU


def test_error_names_an_unknown_device():
    with pytest.raises(
        ConfigError, match=r"^`device` must be 'auto', 'cpu' or 'cuda', but is 'toaster'\.$"
    ):
        find_device("toaster")


def test_error_names_a_missing_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(
        ConfigError, match="`device` is 'cuda', but torch finds no GPU.*--device cpu"
    ):
        find_device("cuda")


@pytest.mark.parametrize(
    ("precision", "is_native", "dtype"),
    [
        ("fp32", True, torch.float32),
        ("fp32", False, torch.float32),
        ("bf16", True, torch.bfloat16),
        ("bf16", False, torch.bfloat16),
        ("auto", True, torch.bfloat16),
        ("auto", False, torch.float32),
    ],
)
def test_auto_precision_depends_on_the_hardware(monkeypatch, precision, is_native, dtype):
    monkeypatch.setattr(device_module, "has_native_bf16", lambda _device: is_native)
    assert find_dtype(precision, CPU) == dtype


def test_same_seed_gives_the_same_numbers():
    numbers = []
    for _ in range(2):
        seed_everything(7)
        numbers.append((random.random(), torch.rand(1).item()))
    assert numbers[0] == numbers[1]


@pytest.mark.parametrize("is_native", [True, False])
def test_hardware_description_names_cores_and_bf16(monkeypatch, is_native):
    monkeypatch.setattr(device_module, "has_native_bf16", lambda _device: is_native)
    words = describe_hardware(CPU)
    assert " cores" in words
    assert words.endswith(", native bf16") == is_native
