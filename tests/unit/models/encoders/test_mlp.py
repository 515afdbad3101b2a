import pytest
import torch

from regard.core.errors import ConfigError
from regard.core.specs import ImageSpec
from regard.models.encoders.mlp import MlpEncoder, MlpEncoderConfig

SPEC = ImageSpec(3, 4, 5)


@pytest.fixture
def encoder():
    torch.manual_seed(0)
    return MlpEncoder(MlpEncoderConfig(dims=(7, 6)), SPEC).eval()


@pytest.fixture
def values():
    return torch.randn(2, *SPEC.shape, generator=torch.Generator().manual_seed(1))


def test_state_is_the_perceptron_of_all_pixels(encoder, values):
    memory = encoder(values, torch.ones(2, 1).bool())
    assert memory.states.shape == (2, 1, 6) and memory.layout == (1, 1) and memory.mask.all()
    assert torch.equal(memory.summary, encoder.perceptron(values.reshape(2, -1)))
    assert torch.equal(memory.states[:, 0], memory.summary)


def test_every_neuron_of_the_first_layer_has_a_weight_for_every_pixel(encoder):
    assert encoder.perceptron.layers[0].weight.shape == (7, 3 * 4 * 5)


def test_pixels_may_be_bytes(encoder):
    pixels = torch.zeros(1, *SPEC.shape, dtype=torch.uint8)
    assert encoder(pixels, torch.ones(1, 1).bool()).states.isfinite().all()


@pytest.mark.parametrize(
    ("dims", "message"),
    [((), "`dims` must have at least one layer"), ((4, 0), r"`dims\[1\]` must be at least 1")],
)
def test_layers_must_have_neurons(dims, message):
    with pytest.raises(ConfigError, match=message):
        MlpEncoderConfig(dims=dims)
