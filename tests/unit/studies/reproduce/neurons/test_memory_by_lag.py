import pytest
import torch

from regard.studies.reproduce.neurons.memory_by_lag import (
    CAUSES,
    DIM,
    GRADIENT_LENGTH,
    LSTM,
    LSTM_OPEN,
    MODELS,
    NUM_SYMBOLS,
    VANILLA,
    build,
    gradient_by_lag,
    sample_sentences,
    sample_sequences,
)


def test_symbol_to_recall_is_first_and_no_other_symbol_follows():
    tokens, labels = sample_sequences(20, 7, torch.Generator().manual_seed(1))
    assert tokens.shape == (20, 8)
    assert torch.equal(tokens[:, 0], labels)
    assert labels.max() < NUM_SYMBOLS <= tokens[:, 1:].min()


@pytest.mark.parametrize("name", MODELS)
def test_gradients_begin_with_one_at_lag_zero(name):
    gradients = gradient_by_lag(build(name, seed=1), seed=1)
    assert len(gradients) == GRADIENT_LENGTH and gradients[0] == 1


def test_gradient_of_a_vanilla_net_is_the_product_of_its_jacobians():
    model = build(VANILLA, seed=1)
    embedded = model.embedding(torch.tensor([[0, 9, 10]])).detach().requires_grad_()
    logit = model.predict(embedded)[0, 0]
    (gradient,) = torch.autograd.grad(logit, embedded)
    states, _ = model.recurrence(embedded)
    weight_ih, weight_hh = model.recurrence.weight_ih_l0, model.recurrence.weight_hh_l0
    slopes = [torch.diag(1 - state**2) for state in states[0]]
    row = model.output.weight[0] @ slopes[2] @ weight_hh @ slopes[1] @ weight_hh @ slopes[0]
    assert torch.allclose(gradient[0, 0], row @ weight_ih, atol=1e-6)


def test_forget_bias_opens_the_forget_gates_only():
    plain, opened = (build(name, seed=1).recurrence.bias_ih_l0 for name in (LSTM, LSTM_OPEN))
    expected = torch.zeros(4 * DIM)
    expected[DIM : 2 * DIM] = 3
    assert torch.allclose(opened - plain, expected, atol=1e-6)


def test_first_clause_determines_the_last_word():
    for words, answer in sample_sentences(20, torch.Generator().manual_seed(1)):
        text = " ".join(words)
        assert text.endswith("I am very")
        assert [last for first, last in CAUSES.items() if text.startswith(first)] == [answer]
