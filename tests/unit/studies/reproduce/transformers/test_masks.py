import torch

from regard.studies.reproduce.transformers.masks import (
    CAUSAL_ENCODER,
    EARLIER,
    ENCODED,
    LATER,
    change_scores,
    mask_after_softmax,
    mask_before_softmax,
    replace_tokens,
    strict_weights,
)

SCORES = torch.randn(4, 4, generator=torch.Generator().manual_seed(7))


def test_future_tokens_do_not_change_earlier_outputs():
    changes = replace_tokens(seed=5)
    assert changes[EARLIER] == 0
    assert changes[LATER] > 0


def test_unmasked_encoder_depends_on_the_last_token_and_a_causal_one_does_not():
    changes = replace_tokens(seed=5)
    assert changes[ENCODED] > 0
    assert changes[CAUSAL_ENCODER] == 0


def test_fully_masked_row_has_zero_weights():
    weights = strict_weights(SCORES)
    assert weights[0].tolist() == [0, 0, 0, 0]
    assert weights[1].tolist() == [1, 0, 0, 0]


def test_gradient_of_a_fully_masked_row_is_zero():
    scores = SCORES.clone().requires_grad_()
    strict_weights(scores).square().sum().backward()
    assert scores.grad[0].tolist() == [0, 0, 0, 0]
    assert not scores.grad.isnan().any()


def test_masking_after_the_softmax_leaks_without_renormalising():
    before, after = change_scores(SCORES).values()
    assert before == 0
    assert after > 0
    rows = mask_after_softmax(SCORES)
    assert torch.allclose(rows / rows.sum(1, keepdim=True), mask_before_softmax(SCORES))
