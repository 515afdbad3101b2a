"""A model of every case of the matrices, its inputs and its logits, shared by a module's tests."""

import pytest


@pytest.fixture(scope="module")
def sentences(config, inputs_of):
    return inputs_of(config)


@pytest.fixture(scope="module")
def model(config, build, calibrate, sentences):
    # Double precision, so that large logits, as a model without norms has them, agree as well.
    return calibrate(build(config).double(), sentences).requires_grad_(False)


@pytest.fixture(scope="module")
def logits(model, sentences):
    """Logits of all target positions, computed at once."""
    return model(sentences.source, sentences.mask, sentences.targets).logits
