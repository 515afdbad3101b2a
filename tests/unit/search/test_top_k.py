import pytest
import torch

from regard.search.top_k import BLOCK, MIN_BLOCKS, most_likely, top_continuations

LARGE = MIN_BLOCKS * BLOCK * 2


@pytest.mark.parametrize("vocab", [3, 50, LARGE, LARGE + 1, LARGE + BLOCK - 1])
@pytest.mark.parametrize("beams", [1, 5])
def test_selection_equals_a_sort_of_all_continuations(vocab, beams):
    generator = torch.Generator().manual_seed(vocab + beams)
    totals = torch.randn(4, beams, generator=generator)
    log_probs = torch.randn(4 * beams, vocab, generator=generator).log_softmax(-1)
    values, indices = top_continuations(totals, log_probs, 2 * beams)
    sums = (totals.flatten()[:, None] + log_probs).view(4, -1)
    expected = sums.sort(dim=1, descending=True)
    num = min(2 * beams, beams * vocab)
    assert torch.equal(values, expected.values[:, :num])
    assert torch.equal(indices, expected.indices[:, :num])


def test_best_tokens_in_one_block_and_in_the_last_partial_block_are_found():
    vocab = LARGE + 5
    log_probs = torch.full((2, vocab), -50.0)
    log_probs[0, 64:70] = -torch.arange(1.0, 7.0)
    log_probs[1, -4:] = -torch.arange(1.0, 5.0)
    values, indices = top_continuations(torch.zeros(2, 1), log_probs, 4)
    assert values.tolist() == [[-1.0, -2.0, -3.0, -4.0]] * 2
    assert indices.tolist() == [[64, 65, 66, 67], [vocab - 4, vocab - 3, vocab - 2, vocab - 1]]


def test_beams_without_a_hypothesis_are_never_selected():
    totals = torch.tensor([[0.0, -torch.inf]])
    log_probs = torch.zeros(2, LARGE).log_softmax(-1)
    values, indices = top_continuations(totals, log_probs, 4)
    assert values.isfinite().all()
    assert (indices < LARGE).all()


@pytest.mark.parametrize("vocab", [3, LARGE, LARGE + 1, LARGE + BLOCK - 1])
def test_most_likely_token_is_the_first_of_the_largest(vocab):
    generator = torch.Generator().manual_seed(vocab)
    log_probs = torch.randn(40, vocab, generator=generator)
    log_probs[20:] = log_probs[20:].clamp(max=0.5)  # many equal ones
    log_probs[30, :-1] = -torch.inf
    values, tokens = most_likely(log_probs)
    assert torch.equal(values, log_probs.amax(-1))
    assert tokens.tolist() == [row.index(max(row)) for row in log_probs.tolist()]
