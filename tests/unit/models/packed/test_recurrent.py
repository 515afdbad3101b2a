import pytest
import torch

from regard.attention.scores import AdditiveScore
from regard.core.native.linear import PRODUCTS
from regard.models.packed.recurrent import MAX_EXPONENT, PackedAdditiveScore, PackedRecurrence
from regard.models.packing import pack
from regard.models.recurrent import Recurrence, RecurrentConfig, num_tensors


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0, 1000.0])
@torch.no_grad()
def test_score_by_exponentials_is_the_additive_score(scale):
    score = AdditiveScore(6, 5, dim=16)
    packed = PackedAdditiveScore(score)
    queries, keys = scale * torch.randn(2, 3, 6), scale * torch.randn(2, 4, 5)
    expected = score(queries, score.prepare(keys))
    found = packed(queries, packed.prepare(keys))
    assert found.shape == (2, 3, 4)
    # The limit of the exponents shows only where both terms are large and nearly cancel.
    if 4 * scale < MAX_EXPONENT:
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert found.isfinite().all()


@pytest.mark.parametrize("cell", ["vanilla", "gru", "lstm"])
@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize("rest", [0, 3])
@torch.no_grad()
def test_packed_steps_are_the_steps(cell, num_layers, rest):
    config = RecurrentConfig(cell=cell, dim=8, num_layers=num_layers)
    recurrence = Recurrence(config, 5 + rest).eval()
    packed = PackedRecurrence(recurrence, PRODUCTS["fp32"])
    known, other = torch.randn(4, 6, 5), torch.randn(4, 6, rest)
    ours = theirs = tuple(
        tuple(torch.randn(4, 8) for _ in range(num_tensors(cell))) for _ in range(num_layers)
    )
    steps, expected = packed.unroll(known), recurrence.unroll(known)
    for position in range(6):
        inputs = other[:, position] if rest else None
        output, ours = steps.step(position, inputs, ours)
        reference, theirs = expected.step(position, inputs, theirs)
        torch.testing.assert_close(output, reference)
    torch.testing.assert_close(ours, theirs)


@torch.no_grad()
def test_packed_copies_of_models_have_packed_parts():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.score = AdditiveScore(4, 4, dim=8)
            self.recurrence = Recurrence(RecurrentConfig(cell="gru", dim=8), 4)

    model = Model().eval()
    packed = pack(model, "fp32")
    assert isinstance(packed.score, PackedAdditiveScore)
    assert isinstance(packed.recurrence, PackedRecurrence)
    assert isinstance(model.recurrence, Recurrence)
    assert packed.score.query_map.weight is model.score.query_map.weight
