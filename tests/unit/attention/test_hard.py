import pytest
import torch

from regard.attention.attend import weigh
from regard.attention.hard import HardAttention
from regard.attention.recording import record
from regard.attention.scores import DotScore


def ask(soft_share=0.0, *, is_training, num=2000):
    """One query, many times, over four places of which the last is padding."""
    torch.manual_seed(0)
    attention = HardAttention(DotScore(3, 3), soft_share=soft_share).train(is_training)
    states, query = torch.randn(1, 4, 3), torch.randn(1, 1, 3).requires_grad_()
    mask = torch.tensor([[True, True, True, False]])
    prepared = attention.prepare(states, mask)
    places = attention.begin(prepared, beams=num)[None]
    probs = weigh(query @ states.transpose(1, 2), mask[:, None])[0, 0]
    with record(attention) as maps:
        choice = attention(query.expand(1, num, 3), prepared, places)
    return choice, states, probs, places[0], maps


def test_places_are_drawn_as_likely_as_they_are():
    choice, states, probs, _, _ = ask(is_training=True)
    assert ((choice.weights == 0) | (choice.weights == 1)).all()
    assert (choice.weights.sum(-1) == 1).all()
    # Three standard errors of a share near one half.
    assert torch.allclose(choice.weights[0].mean(0), probs, atol=3 * 0.5 / 2000**0.5)
    assert choice.weights[..., 3].sum() == 0
    assert torch.equal(choice.context, choice.weights @ states)


def test_log_probability_is_that_of_the_place_drawn():
    choice, _, probs, _, _ = ask(is_training=True)
    assert torch.allclose(choice.log_probs[0].exp(), probs[choice.weights[0].argmax(-1)])


def test_entropy_is_that_of_all_places():
    choice, _, probs, _, _ = ask(is_training=True)
    expected = torch.distributions.Categorical(probs).entropy()
    assert torch.allclose(choice.entropies, expected.expand(1, 2000))


def test_in_evaluation_the_likeliest_place_is_seen():
    choice, _, probs, places, _ = ask(0.5, is_training=False)
    assert not places.any()
    assert (choice.weights.argmax(-1) == probs.argmax()).all()


def test_some_see_what_is_expected():
    choice, states, probs, places, _ = ask(0.5, is_training=True)
    assert places.float().mean().item() == pytest.approx(0.5, abs=3 * 0.5 / 2000**0.5)
    assert torch.allclose(choice.weights[0, places], probs.expand(int(places.sum()), -1))
    assert torch.allclose(
        choice.context[0, places], (probs @ states[0]).expand_as(choice.context[0, places])
    )
    assert (choice.log_probs[0, places] == 0).all()
    assert (choice.log_probs[0, ~places] < 0).all()


def test_share_that_sees_what_is_expected_falls_batch_by_batch():
    torch.manual_seed(0)
    attention = HardAttention(DotScore(3, 3), soft_share=0.2, soft_steps=4)
    prepared = attention.prepare(torch.randn(2000, 1, 3), torch.ones(2000, 1).bool())
    attention.eval().begin(prepared)  # This batch is none of them.
    shares = [attention.train().begin(prepared).float().mean().item() for _ in range(6)]
    assert shares[0] == 1
    assert shares == pytest.approx([1, 0.8, 0.6, 0.4, 0.2, 0.2], abs=3 * 0.5 / 2000**0.5)


def test_who_goes_on_later_goes_on_with_the_same_share():
    attention, other = (HardAttention(DotScore(3, 3), soft_steps=4) for _ in range(2))
    prepared = attention.prepare(torch.randn(1, 1, 3), torch.ones(1, 1).bool())
    attention.begin(prepared)
    other.load_state_dict(attention.state_dict())
    assert other.num_begun == attention.num_begun == 1
    assert not HardAttention(DotScore(3, 3)).state_dict()


def test_what_is_recorded_is_where_it_looked():
    choice, _, _, _, maps = ask(is_training=True)
    assert torch.equal(maps.stack()[:, 0, 0], choice.weights)


def test_gradients_are_finite_where_a_place_has_no_chance():
    attention = HardAttention(DotScore(1, 1)).train()
    states = torch.tensor([[[300.0], [-300.0]]])
    query = torch.ones(1, 1, 1, requires_grad=True)
    prepared = attention.prepare(states, torch.ones(1, 2).bool())
    choice = attention(query, prepared, torch.zeros(1, 1).bool())
    (choice.log_probs.sum() + choice.entropies.sum()).backward()
    assert query.grad.isfinite().all()
