"""What a box costs, by hand and by counting."""

import pytest
import torch

from regard.training.boxes import box_distance, generalised_iou

UNIT = torch.tensor([0.0, 0.0, 1.0, 1.0])


def test_box_shares_all_with_itself():
    assert generalised_iou(UNIT, UNIT).item() == pytest.approx(1)


def test_boxes_apart_share_less_the_farther_they_are():
    away = [UNIT + torch.tensor([far, 0, far, 0]) for far in (1.0, 2.0, 9.0)]
    found = [generalised_iou(UNIT, box).item() for box in away]
    # In the box around both, 3 x 1 and 10 x 1, all but 2 is empty.
    assert found == pytest.approx([0, -1 / 3, -8 / 10])


def test_share_by_hand():
    one, other = torch.tensor([0.0, 0, 2, 2]), torch.tensor([1.0, 1, 3, 3])
    assert generalised_iou(one, other).item() == pytest.approx(1 / 7 - 2 / 9)


def test_pairs_of_boxes_are_taken_one_by_one_in_either_order():
    torch.manual_seed(0)
    low, size = torch.rand(2, 20, 2), torch.rand(2, 20, 2)
    one, other = torch.cat([low, low + size], -1)
    found = generalised_iou(one, other)
    assert found.shape == (20,)
    assert torch.allclose(found, generalised_iou(other, one))
    assert found[7] == generalised_iou(one[7], other[7])
    assert (found >= -1).all() and (found <= 1).all()


def test_boxes_apart_are_drawn_together():
    box = (UNIT + 3).requires_grad_()
    generalised_iou(box, UNIT).backward()
    # To share more, all edges move back.
    assert (box.grad[:2] < 0).all()


def test_box_without_any_area_costs_a_finite_number():
    assert generalised_iou(torch.zeros(4), torch.zeros(4)).isfinite()


def test_distance_is_that_of_middle_and_size():
    moved = UNIT + torch.tensor([0.1, 0.2, 0.1, 0.2])
    grown = torch.tensor([-0.1, 0, 1.1, 1])
    found = box_distance(torch.stack([moved, grown]), UNIT.expand(2, 4))
    assert found.tolist() == pytest.approx([0.3, 0.2])
