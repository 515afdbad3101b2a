import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch.distributions import Normal

from regard.training import losses
from regard.training.losses import (
    box_distance,
    cross_entropy,
    gaussian_nll,
    generalized_iou,
    log_probs_of,
    sum_term,
)

LOGITS = torch.tensor([[[2.0, 0.0, -1.0], [0.5, 0.5, 0.5], [9.0, -9.0, 0.0]]])
LABELS = torch.tensor([[0, 2, 1]])
MASK = torch.tensor([[True, True, False]])


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_total_equals_torch_over_unmasked_positions(smoothing):
    loss = cross_entropy(LOGITS, LABELS, MASK, smoothing=smoothing)
    expected = F.cross_entropy(
        LOGITS[MASK], LABELS[MASK], reduction="sum", label_smoothing=smoothing
    )
    torch.testing.assert_close(loss.total, expected)


def test_nll_is_without_label_smoothing():
    smooth = cross_entropy(LOGITS, LABELS, MASK, smoothing=0.3)
    plain = cross_entropy(LOGITS, LABELS, MASK)
    assert torch.equal(smooth.nll, plain.total)


def test_nll_has_no_gradient():
    loss = cross_entropy(LOGITS.clone().requires_grad_(), LABELS, MASK)
    assert loss.total.requires_grad
    assert not loss.nll.requires_grad


def test_count_is_the_number_of_unmasked_positions():
    assert cross_entropy(LOGITS, LABELS, MASK).count == 2


def test_masked_positions_get_no_gradient():
    logits = LOGITS.clone().requires_grad_()
    cross_entropy(logits, LABELS, MASK, smoothing=0.1).total.backward()
    assert torch.equal(logits.grad[0, 2], torch.zeros(3))


def test_half_precision_logits_are_computed_in_32_bits():
    half = LOGITS.bfloat16()
    loss = cross_entropy(half, LABELS, MASK)
    assert torch.equal(loss.total, cross_entropy(half.float(), LABELS, MASK).total)


def test_sums_of_two_batches_equal_the_sum_of_both():
    both = cross_entropy(LOGITS, LABELS, torch.ones(1, 3, dtype=torch.bool))
    parts = [
        cross_entropy(LOGITS[:, :1], LABELS[:, :1], MASK[:, :1]),
        cross_entropy(LOGITS[:, 1:], LABELS[:, 1:], torch.ones(1, 2, dtype=torch.bool)),
    ]
    torch.testing.assert_close(sum(part.total for part in parts), both.total)


def test_wrong_axes_are_named():
    with pytest.raises(ValueError, match=r"`logits` must have the axes \(B, T, V"):
        cross_entropy(LOGITS[0], LABELS, MASK)


def test_log_probabilities_of_the_true_tokens_sum_to_the_nll():
    log_probs = log_probs_of(LOGITS, LABELS)
    assert log_probs.shape == (1, 3)
    torch.testing.assert_close(-log_probs[MASK].sum(), cross_entropy(LOGITS, LABELS, MASK).nll)


def test_terms_of_any_shape_become_sums_over_tokens():
    mask = torch.tensor([[True, True, False], [True, False, False]])
    assert sum_term(torch.tensor(2.0), mask) == 6
    assert sum_term(torch.tensor([0.5, 4.0]), mask) == 4.5
    assert sum_term(torch.tensor([[1.0, 2.0, 90.0], [3.0, 90.0, 90.0]]), mask) == 6


UNIT = torch.tensor([0.0, 0.0, 1.0, 1.0])


def test_iou_of_a_box_with_itself_is_1():
    assert generalized_iou(UNIT, UNIT).item() == pytest.approx(1)


def test_generalized_iou_decreases_with_distance():
    away = [UNIT + torch.tensor([far, 0, far, 0]) for far in (1.0, 2.0, 9.0)]
    found = [generalized_iou(UNIT, box).item() for box in away]
    # The enclosing boxes are 3 x 1 and 10 x 1; all but an area of 2 is empty.
    assert found == pytest.approx([0, -1 / 3, -8 / 10])


def test_generalized_iou_equals_a_value_by_hand():
    one, other = torch.tensor([0.0, 0, 2, 2]), torch.tensor([1.0, 1, 3, 3])
    assert generalized_iou(one, other).item() == pytest.approx(1 / 7 - 2 / 9)


def test_generalized_iou_is_batched_and_symmetric():
    torch.manual_seed(0)
    low, size = torch.rand(2, 20, 2), torch.rand(2, 20, 2)
    one, other = torch.cat([low, low + size], -1)
    found = generalized_iou(one, other)
    assert found.shape == (20,)
    assert torch.allclose(found, generalized_iou(other, one))
    assert found[7] == generalized_iou(one[7], other[7])
    assert (found >= -1).all() and (found <= 1).all()


def test_gradient_moves_disjoint_boxes_together():
    box = (UNIT + 3).requires_grad_()
    generalized_iou(box, UNIT).backward()
    # Moving all edges back increases the IoU.
    assert (box.grad[:2] < 0).all()


def test_generalized_iou_of_empty_boxes_is_finite():
    assert generalized_iou(torch.zeros(4), torch.zeros(4)).isfinite()


def test_box_distance_is_that_of_centre_and_size():
    moved = UNIT + torch.tensor([0.1, 0.2, 0.1, 0.2])
    grown = torch.tensor([-0.1, 0, 1.1, 1])
    found = box_distance(torch.stack([moved, grown]), UNIT.expand(2, 4))
    assert found.tolist() == pytest.approx([0.3, 0.2])


@pytest.mark.parametrize("std", [1.0, 0.1])
def test_gaussian_nll_equals_torch_normal(std):
    means, images = torch.rand(2, 4, 3, 5, 6, requires_grad=True).unbind(0)
    found = gaussian_nll(means, images, std=std)
    expected = -Normal(means, std).log_prob(images).sum()
    torch.testing.assert_close(found.total, expected)
    torch.testing.assert_close(found.nll, expected.detach())
    assert not found.nll.requires_grad
    assert float(found.count) == 4 * 3 * 5 * 6


def test_gaussian_nll_checks_its_axes():
    with pytest.raises(ValueError, match="`means` must have the axes"):
        gaussian_nll(torch.rand(3, 4), torch.rand(3, 4), std=1.0)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("chunk", [1, 25, 1 << 20], ids=["one row", "two rows", "all rows"])
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.bfloat16, 8e-3)], ids=["fp32", "bf16"]
)
def test_gradient_in_chunks_equals_that_of_torch(monkeypatch, chunk, smoothing, dtype, tolerance):
    monkeypatch.setitem(losses.CHUNK_ELEMENTS, "cpu", chunk)
    torch.manual_seed(0)
    logits = (3 * torch.randn(4, 5, 11)).to(dtype).requires_grad_()
    labels, mask = torch.randint(0, 11, (4, 5)), torch.rand(4, 5) > 0.3
    loss = cross_entropy(logits, labels, mask, smoothing=smoothing)
    (2 * loss.total).backward()
    copy = logits.detach().double().requires_grad_()
    expected = F.cross_entropy(copy[mask], labels[mask], reduction="sum", label_smoothing=smoothing)
    (2 * expected).backward()
    torch.testing.assert_close(loss.total.double(), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(logits.grad.double(), copy.grad, rtol=tolerance, atol=tolerance)
    assert logits.grad.dtype == dtype
