import math

import pytest
import torch

from regard.search.greedy import ActiveSentences, greedy, should_check

START, END = 9, 3


def search(scorer, *limits):
    return greedy(scorer, start=START, end=END, max_lengths=torch.tensor(limits))


def test_most_likely_token_is_selected_at_every_step(tree_scorer, lecture_tree):
    (found,) = search(tree_scorer(lecture_tree), 10)
    assert found.tokens == (0, 1, 2, END)
    assert math.exp(found.log_prob) == pytest.approx(0.5 * 0.4 * 0.4 * 0.6)


def test_steps_add_up_to_the_log_probability(tree_scorer, lecture_tree):
    (found,) = search(tree_scorer(lecture_tree), 10)
    assert [math.exp(step) for step in found.step_log_probs] == pytest.approx([0.5, 0.4, 0.4, 0.6])
    assert found.value == found.log_prob == pytest.approx(sum(found.step_log_probs))


def test_each_sentence_has_its_own_limit(tree_scorer, lecture_tree):
    found = search(tree_scorer(lecture_tree, lecture_tree, lecture_tree), 2, 4, 3)
    assert [hypothesis.tokens for hypothesis in found] == [(0, 1), (0, 1, 2, END), (0, 1, 2)]


def test_log_probability_stops_at_the_limit(tree_scorer, lecture_tree):
    short, _ = search(tree_scorer(lecture_tree, lecture_tree), 2, 4)
    assert math.exp(short.log_prob) == pytest.approx(0.5 * 0.4)
    assert len(short.step_log_probs) == 2


def test_search_stops_when_all_have_ended(tree_scorer, lecture_tree):
    scorer = tree_scorer(lecture_tree, {(): (0.0, 0.0, 0.0, 1.0)})
    search(scorer, 50, 50)
    assert scorer.num_steps == 4


def test_search_stops_when_all_have_reached_their_limit(tree_scorer, lecture_tree):
    scorer = tree_scorer(lecture_tree, {(): (0.0, 0.0, 0.0, 1.0)})
    search(scorer, 2, 50)
    assert scorer.num_steps == 2


def test_limit_of_zero_gives_an_empty_hypothesis(tree_scorer, lecture_tree):
    (found,) = search(tree_scorer(lecture_tree), 0)
    assert (found.tokens, found.log_prob) == ((), 0.0)


def test_cpu_checks_every_step_and_gpu_every_fourth_step():
    steps = range(8)
    assert all(should_check(step, torch.device("cpu")) for step in steps)
    checks = [step for step in steps if should_check(step, torch.device("cuda"))]
    assert checks == [3, 7]


def test_sentences_leave_when_they_have_wasted_enough():
    is_done = torch.tensor([True] + [False] * 9)
    sentences = ActiveSentences(can_leave=True)
    assert [sentences.find(is_done) is None for _ in range(2)] == [True, True]
    assert sentences.find(is_done).tolist() == list(range(1, 10))
    assert sentences.find(is_done) is None
    # Without leaving, search ends with the last sentence only.
    staying = ActiveSentences(can_leave=False)
    assert all(staying.find(is_done) is None for _ in range(100))
    assert staying.find(torch.ones(10, dtype=torch.bool)).tolist() == []
