import pytest
import torch

from regard.core.errors import ConfigError
from regard.core.module import Linear, PackedLinear, apply_jointly
from regard.core.native.linear import PRODUCTS
from regard.models.packing import pack

BOUNDS = {"fp32": 1e-5, "bf16": 0.05, "int8": 0.1}
"""Largest difference of outputs of about 1 from those in float32."""


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("size", [(24, 40), (1024, 1056)])
@pytest.mark.parametrize("precision", PRODUCTS)
@torch.no_grad()
def test_packed_layer_is_close_to_the_layer(precision, size, has_bias):
    layer = Linear(*size, bias=has_bias)
    inputs = torch.randn(3, 2, size[0])
    outputs = PackedLinear(layer, PRODUCTS[precision])(inputs)
    assert outputs.dtype == torch.float32
    assert torch.allclose(outputs, layer(inputs), atol=BOUNDS[precision])


@pytest.mark.parametrize("precision", PRODUCTS)
@torch.no_grad()
def test_row_does_not_depend_on_other_rows(precision):
    packed = PackedLinear(Linear(64, 96), PRODUCTS[precision])
    inputs = torch.randn(40, 64)
    inputs[1:] *= 100
    assert torch.allclose(packed(inputs)[:1], packed(inputs[:1]), atol=1e-6)


@pytest.mark.parametrize("precision", PRODUCTS)
@torch.no_grad()
def test_joint_product_equals_single_products(precision):
    layers = [PackedLinear(Linear(16, width), PRODUCTS[precision]) for width in (8, 24, 8)]
    inputs = torch.randn(5, 16)
    for joint, layer in zip(apply_jointly(layers, inputs), layers, strict=True):
        assert torch.allclose(joint, layer(inputs), atol=1e-6)


@torch.no_grad()
def test_row_of_zeros_stays_finite_in_int8():
    packed = PackedLinear(Linear(16, 8), PRODUCTS["int8"])
    assert torch.allclose(packed(torch.zeros(1, 16)), packed.bias)


def test_copy_shares_parameters_and_leaves_the_model_unchanged():
    model = torch.nn.Sequential(Linear(8, 8), torch.nn.LayerNorm(8))
    packed = pack(model, "bf16")
    assert isinstance(packed[0], PackedLinear) and type(model[0]) is Linear
    assert packed[0].weight is model[0].weight and packed[1].weight is model[1].weight
    assert list(packed.state_dict()) == list(model.state_dict())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_int8_on_a_gpu_is_refused():
    with pytest.raises(ConfigError, match="int8"):
        pack(torch.nn.Linear(2, 2, device="cuda"), "int8")
