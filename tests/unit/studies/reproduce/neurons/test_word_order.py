import pytest
import torch

from regard.studies.reproduce.neurons.word_order import (
    BAG,
    CNN,
    LENGTH,
    MLP,
    NAMES,
    RNN,
    Sentence,
    build,
    change_by_shift,
    divide_pairs,
    to_tensors,
)


def test_both_voices_have_the_same_agent():
    active = Sentence("anna", "ben", "sees", "today", is_passive=False)
    passive = Sentence("anna", "ben", "sees", "today", is_passive=True)
    assert " ".join(active.at_end) == "anna sees ben today"
    assert " ".join(active.in_front) == "today anna sees ben"
    assert " ".join(passive.at_end) == "ben is seen by anna today"


def test_no_pair_of_names_is_in_both_parts():
    train, test = (
        {frozenset((one.agent, one.patient)) for one in part} for part in divide_pairs(1)
    )
    assert not train & test
    assert len(train | test) == len(NAMES) * (len(NAMES) - 1) // 2


def test_every_bag_of_words_has_two_possible_agents():
    agents = {}
    for one in divide_pairs(1)[0]:
        agents.setdefault(frozenset(one.at_end), set()).add(one.agent)
    assert {len(found) for found in agents.values()} == {2}


@pytest.mark.parametrize("name", [BAG, MLP, CNN, RNN])
def test_every_model_predicts_an_agent(name):
    examples = [(one.at_end, one.agent) for one in divide_pairs(1)[1][:3]]
    tokens, labels = to_tensors(examples)
    assert tokens.shape == (3, LENGTH) and labels.max() < len(NAMES)
    assert build(name, seed=1)(tokens).shape == (3, len(NAMES))


def test_only_the_bag_of_words_is_unchanged_by_a_shift():
    changes = {name: change_by_shift(build(name, seed=1)) for name in (BAG, MLP, CNN, RNN)}
    assert changes[BAG] == pytest.approx(0, abs=1e-6)
    assert min(changes[name] for name in (MLP, CNN, RNN)) > 0.01


def test_bag_of_words_predicts_the_same_for_both_orders():
    model = build(BAG, seed=1)
    orders = [("anna sees ben today".split(), "anna"), ("ben sees anna today".split(), "ben")]
    first, second = model(to_tensors(orders)[0])
    assert torch.allclose(first, second, atol=1e-6)
