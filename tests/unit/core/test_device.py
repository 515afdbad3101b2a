import random

import pytest
import torch

from regard.core import device as device_module
from regard.core.device import (
    describe_hardware,
    find_device,
    find_dtype,
    seed_everything,
    set_threads,
    sum_dtype,
)
from regard.core.errors import ConfigError

CPU = torch.device("cpu")


def pretend(monkeypatch, kind, num, *, error=None):
    """Let torch report devices of a type; allocation on them does nothing, or fails."""

    def zeros(*_sizes, device):
        if error is not None:
            raise error

    monkeypatch.setattr(getattr(torch, kind), "is_available", lambda: num > 0)
    monkeypatch.setattr(getattr(torch, kind), "device_count", lambda: num)
    monkeypatch.setattr(torch, "zeros", zeros)


@pytest.mark.parametrize(("num", "name"), [(2, "cuda"), (0, "cpu")])
def test_auto_selects_a_gpu_if_available(monkeypatch, num, name):
    pretend(monkeypatch, "cuda", num)
    assert find_device("auto").type == name


@pytest.mark.parametrize("kind", ["xpu", "mps"])
def test_auto_selects_the_cpu_beside_devices_without_tests(monkeypatch, kind):
    pretend(monkeypatch, kind, 1)
    assert find_device("auto") == CPU


@pytest.mark.parametrize("name", ["cuda", "cuda:1", "xpu", "xpu:1", "mps", "mps:0"])
def test_device_is_found_by_its_name_in_torch(monkeypatch, name):
    pretend(monkeypatch, name.partition(":")[0], 2)
    assert find_device(name) == torch.device(name)


@pytest.mark.parametrize("name", ["toaster", "", "cuda:-1", "cuda", "xpu", "mps", "meta", "cpu:1"])
def test_error_names_a_device_that_is_not_there_and_those_that_are(monkeypatch, name):
    pretend(monkeypatch, "cuda", 0)
    with pytest.raises(ConfigError, match=rf"^`device` .*'auto', 'cpu' .*'{name}'\.[^\n]*$"):
        find_device(name)


def test_error_lists_the_gpus_of_the_machine(monkeypatch):
    pretend(monkeypatch, "cuda", 2)
    with pytest.raises(ConfigError, match=r"'cuda:0', 'cuda:1' .*'cuda:2'"):
        find_device("cuda:2")


def test_error_names_a_build_without_cuda(monkeypatch):
    pretend(monkeypatch, "cuda", 0)
    monkeypatch.setattr(torch.version, "cuda", None)
    with pytest.raises(ConfigError, match="build without CUDA"):
        find_device("cuda")


@pytest.mark.parametrize("name", ["mps", "xpu"])
def test_error_reports_that_torch_finds_no_such_device(monkeypatch, name):
    pretend(monkeypatch, name, 0)
    with pytest.raises(ConfigError, match=f"torch finds no '{name}' device"):
        find_device(name)


def test_device_that_cannot_allocate_is_one_line(monkeypatch):
    pretend(monkeypatch, "cuda", 1, error=RuntimeError("CUDA error: device is busy\nDetails."))
    with pytest.raises(ConfigError, match=r"^`device` is 'cuda'.*device is busy[^\n]*$"):
        find_device("cuda")


@pytest.mark.parametrize(("kind", "dtype"), [("mps", torch.float32), ("cuda", torch.float64)])
def test_sums_have_a_dtype_that_the_device_supports(kind, dtype):
    assert sum_dtype(torch.device(kind)) == dtype


@pytest.mark.parametrize("kind", ["mps", "xpu"])
def test_hardware_description_names_the_device(monkeypatch, kind):
    monkeypatch.setattr(torch.xpu, "get_device_name", lambda _device: "an xpu")
    monkeypatch.setattr(torch.xpu, "is_bf16_supported", lambda: True)
    assert kind in describe_hardware(torch.device(kind))


@pytest.fixture
def _keep_threads():
    num = torch.get_num_threads()
    yield
    torch.set_num_threads(num)


@pytest.mark.usefixtures("_keep_threads")
def test_number_of_threads_is_set():
    set_threads(3)
    assert torch.get_num_threads() == 3


def test_number_of_threads_must_be_positive():
    with pytest.raises(ConfigError, match=r"`threads` must be 1 to 1,024, but is 0\."):
        set_threads(0)


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
