"""Training and sampling on devices without float64, such as Apple GPUs."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from regard.search import sampling
from regard.training import gradients, logs
from regard.training.settings import TrainConfig
from tests.training_bench import Bench


class WithoutFloat64(TorchDispatchMode):
    """Raises on tensors of float64."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.dtype == torch.float64:
            raise TypeError(f"{func} returns float64, which this device does not support")
        return result


@pytest.fixture(autouse=True)
def device_without_float64(monkeypatch):
    for module in (gradients, logs, sampling):
        monkeypatch.setattr(module, "sum_dtype", lambda _device: torch.float32)


def test_training_needs_no_float64(tmp_path):
    bench = Bench(tmp_path, TrainConfig(max_steps=3, log_every=1), values=[0.5, 0.6, 0.7])
    with WithoutFloat64():
        bench.run()
    assert [row["step"] for row in bench.rows("train")] == [1, 2, 3]


def test_noise_rounded_to_one_samples_the_last_token():
    sampler = sampling._Sampler(torch.ones(1, 1), ())
    with WithoutFloat64():
        _, tokens = sampler(torch.tensor([[0.25, 0.75]]).log(), 0, torch.tensor([0]))
    assert tokens.tolist() == [1]
