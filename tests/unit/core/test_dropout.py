import pytest
import torch

from regard.core.dropout import MIN_ELEMENTS, Dropout, _dropout_by_index, dropout

LARGE, SMALL = (4, MIN_ELEMENTS // 2 + 1), (3, 5)


@pytest.mark.parametrize("probability", [0.1, 0.3, 0.5, 0.9])
def test_share_of_zeros_is_the_probability_and_the_mean_stays(probability):
    torch.manual_seed(0)
    outputs = dropout(torch.ones(500, 500), probability)
    assert (outputs == 0).float().mean().item() == pytest.approx(probability, abs=0.005)
    assert outputs.mean().item() == pytest.approx(1.0, abs=0.02)
    kept = outputs[outputs != 0]
    assert torch.allclose(kept, torch.full_like(kept, 1 / (1 - probability)))


@pytest.mark.parametrize("shape", [LARGE, SMALL], ids=["large", "small"])
def test_masks_depend_on_the_seed_of_torch_alone(shape):
    torch.manual_seed(1)
    first, second = dropout(torch.ones(shape), 0.5), dropout(torch.ones(shape), 0.5)
    torch.manual_seed(1)
    assert torch.equal(dropout(torch.ones(shape), 0.5), first)
    assert not torch.equal(first, second)


def test_neighbours_and_rows_are_independent():
    torch.manual_seed(2)
    dropped = (dropout(torch.ones(1000, 1000), 0.3) == 0).float()
    for one, other in ((dropped[:, 1:], dropped[:, :-1]), (dropped[1:], dropped[:-1])):
        assert (one * other).mean().item() == pytest.approx(0.09, abs=0.002)
    assert dropped.mean(0).std().item() == pytest.approx((0.3 * 0.7 / 1000) ** 0.5, rel=0.1)


@pytest.mark.parametrize("shape", [LARGE, SMALL], ids=["large", "small"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_gradient_has_the_mask_of_the_output(shape, dtype):
    inputs = torch.ones(shape, dtype=dtype, requires_grad=True)
    outputs = dropout(inputs, 0.4)
    outputs.sum().backward()
    assert outputs.dtype == dtype
    assert torch.equal(inputs.grad, outputs.detach())


@pytest.mark.parametrize("shape", [LARGE, SMALL], ids=["large", "small"])
def test_limits_keep_or_drop_everything(shape):
    assert torch.equal(dropout(torch.ones(shape), 0.0), torch.ones(shape))
    assert torch.equal(dropout(torch.ones(shape), 1.0), torch.zeros(shape))


def test_layer_is_the_identity_in_evaluation():
    layer, inputs = Dropout(0.5), torch.randn(LARGE)
    assert not torch.equal(layer(inputs), inputs)
    assert torch.equal(layer.eval()(inputs), inputs)


def test_mask_by_index_keeps_the_mean_and_differs_between_calls():
    torch.manual_seed(1)
    inputs = torch.ones(400, 250, requires_grad=True)
    one, other = _dropout_by_index(inputs, 0.3), _dropout_by_index(inputs, 0.3)
    assert one.unique().tolist() == [0.0, pytest.approx(1 / 0.7)]
    assert one.mean().item() == pytest.approx(1.0, abs=0.01)
    # Neighbours and the masks of two calls are independent: both are kept with 0.7² = 0.49.
    kept = one > 0
    for shifted in (kept[1:] & kept[:-1], kept[:, 1:] & kept[:, :-1], kept & (other > 0)):
        assert shifted.float().mean().item() == pytest.approx(0.49, abs=0.01)
