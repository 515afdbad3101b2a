import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from regard.training.losses import cross_entropy, log_probs_of, sum_term

LOGITS = torch.tensor([[[2.0, 0.0, -1.0], [0.5, 0.5, 0.5], [9.0, -9.0, 0.0]]])
LABELS = torch.tensor([[0, 2, 1]])
MASK = torch.tensor([[True, True, False]])


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_total_equals_torch_over_the_positions_that_count(smoothing):
    loss = cross_entropy(LOGITS, LABELS, MASK, smoothing=smoothing)
    expected = F.cross_entropy(
        LOGITS[MASK], LABELS[MASK], reduction="sum", label_smoothing=smoothing
    )
    torch.testing.assert_close(loss.total, expected)


def test_nll_is_free_of_smoothing():
    smooth = cross_entropy(LOGITS, LABELS, MASK, smoothing=0.3)
    plain = cross_entropy(LOGITS, LABELS, MASK)
    assert torch.equal(smooth.nll, plain.total)


def test_nll_carries_no_gradient():
    loss = cross_entropy(LOGITS.clone().requires_grad_(), LABELS, MASK)
    assert loss.total.requires_grad
    assert not loss.nll.requires_grad


def test_count_is_the_number_of_positions_that_count():
    assert cross_entropy(LOGITS, LABELS, MASK).count == 2


def test_masked_positions_get_no_gradient():
    logits = LOGITS.clone().requires_grad_()
    cross_entropy(logits, LABELS, MASK, smoothing=0.1).total.backward()
    assert torch.equal(logits.grad[0, 2], torch.zeros(3))


def test_half_precision_logits_are_computed_in_32_bits():
    half = LOGITS.bfloat16()
    loss = cross_entropy(half, LABELS, MASK)
    assert torch.equal(loss.total, cross_entropy(half.float(), LABELS, MASK).total)


def test_sums_over_two_batches_equal_the_sum_over_both():
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
    told = log_probs_of(LOGITS, LABELS)
    assert told.shape == (1, 3)
    torch.testing.assert_close(-told[MASK].sum(), cross_entropy(LOGITS, LABELS, MASK).nll)


def test_terms_of_every_kind_are_sums_over_tokens():
    mask = torch.tensor([[True, True, False], [True, False, False]])
    assert sum_term(torch.tensor(2.0), mask) == 6
    assert sum_term(torch.tensor([0.5, 4.0]), mask) == 4.5
    assert sum_term(torch.tensor([[1.0, 2.0, 90.0], [3.0, 90.0, 90.0]]), mask) == 6
