import pytest
import torch

from regard.attention.attend import masked_softmax
from regard.attention.hard import HardAttention
from regard.attention.recording import record
from regard.attention.scores import DotScore


def attend(soft_share=0.0, *, is_training, num=2000):
    """One query, many times, over four positions of which the last is padding."""
    torch.manual_seed(0)
    attention = HardAttention(DotScore(3, 3), soft_share=soft_share).train(is_training)
    states, query = torch.randn(1, 4, 3), torch.randn(1, 1, 3).requires_grad_()
    mask = torch.tensor([[True, True, True, False]])
    prepared = attention.prepare(states, mask)
    is_soft = attention.start(prepared, beams=num)[None]
    probs = masked_softmax(query @ states.transpose(1, 2), mask[:, None])[0, 0]
    with record(attention) as maps:
        attended = attention(query.expand(1, num, 3), prepared, is_soft)
    return attended, states, probs, is_soft[0], maps


def test_positions_are_sampled_with_their_probability():
    attended, states, probs, _, _ = attend(is_training=True)
    assert ((attended.weights == 0) | (attended.weights == 1)).all()
    assert (attended.weights.sum(-1) == 1).all()
    # Three standard errors of a share near one half.
    assert torch.allclose(attended.weights[0].mean(0), probs, atol=3 * 0.5 / 2000**0.5)
    assert attended.weights[..., 3].sum() == 0
    assert torch.equal(attended.context, attended.weights @ states)


def test_log_probability_is_that_of_the_sampled_position():
    attended, _, probs, _, _ = attend(is_training=True)
    assert torch.allclose(attended.sample.log_probs[0].exp(), probs[attended.weights[0].argmax(-1)])


def test_entropy_is_that_of_the_attention_distribution():
    attended, _, probs, _, _ = attend(is_training=True)
    expected = torch.distributions.Categorical(probs).entropy()
    assert torch.allclose(attended.sample.entropies, expected.expand(1, 2000))


def test_in_evaluation_the_most_likely_position_is_selected():
    attended, _, probs, is_soft, _ = attend(0.5, is_training=False)
    assert not is_soft.any()
    assert (attended.weights.argmax(-1) == probs.argmax()).all()


def test_soft_share_of_the_hypotheses_gets_the_expected_context():
    attended, states, probs, is_soft, _ = attend(0.5, is_training=True)
    assert is_soft.float().mean().item() == pytest.approx(0.5, abs=3 * 0.5 / 2000**0.5)
    assert torch.allclose(attended.weights[0, is_soft], probs.expand(int(is_soft.sum()), -1))
    assert torch.allclose(
        attended.context[0, is_soft], (probs @ states[0]).expand_as(attended.context[0, is_soft])
    )
    assert (attended.sample.log_probs[0, is_soft] == 0).all()
    assert (attended.sample.log_probs[0, ~is_soft] < 0).all()


def test_probability_of_soft_attention_decreases_per_batch():
    torch.manual_seed(0)
    attention = HardAttention(DotScore(3, 3), soft_share=0.2, soft_steps=4)
    prepared = attention.prepare(torch.randn(2000, 1, 3), torch.ones(2000, 1).bool())
    attention.eval().start(prepared)  # Batches in evaluation are not counted.
    shares = [attention.train().start(prepared).float().mean().item() for _ in range(6)]
    assert shares[0] == 1
    assert shares == pytest.approx([1, 0.8, 0.6, 0.4, 0.2, 0.2], abs=3 * 0.5 / 2000**0.5)


def test_resumed_training_continues_the_annealing():
    attention, other = (HardAttention(DotScore(3, 3), soft_steps=4) for _ in range(2))
    prepared = attention.prepare(torch.randn(1, 1, 3), torch.ones(1, 1).bool())
    attention.start(prepared)
    other.load_state_dict(attention.state_dict())
    assert other.num_begun == attention.num_begun == 1
    assert not HardAttention(DotScore(3, 3)).state_dict()


def test_recorded_weights_are_those_of_the_sampled_positions():
    attended, _, _, _, maps = attend(is_training=True)
    assert torch.equal(maps.stack()[:, 0, 0], attended.weights)


def test_gradients_are_finite_for_a_position_of_probability_zero():
    attention = HardAttention(DotScore(1, 1)).train()
    states = torch.tensor([[[300.0], [-300.0]]])
    query = torch.ones(1, 1, 1, requires_grad=True)
    prepared = attention.prepare(states, torch.ones(1, 2).bool())
    attended = attention(query, prepared, torch.zeros(1, 1).bool())
    (attended.sample.log_probs.sum() + attended.sample.entropies.sum()).backward()
    assert query.grad.isfinite().all()
