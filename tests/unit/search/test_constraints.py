import math
from functools import partial

import pytest
import torch

from regard.core.errors import ConfigError
from regard.models.interfaces import State, reorder
from regard.search.constraints import (
    ConstrainedScorer,
    build_constraints,
    forbid_end,
    forbid_repeats,
    force_prefix,
    penalize_repetition,
)
from regard.search.settings import SearchConfig

START, END = 9, 3
VOCAB = 5


@pytest.fixture(params=range(4))
def numbers(request):
    generator = torch.Generator().manual_seed(request.param)
    log_probs = torch.randn(6, VOCAB, generator=generator).log_softmax(1)
    written = torch.randint(0, VOCAB, (6, 9), generator=generator)
    return log_probs, written


def forbidden(before, after):
    """The forbidden tokens of each row; all others must be untouched."""
    is_forbidden = after == -torch.inf
    assert torch.equal(after[~is_forbidden], before[~is_forbidden])
    return [set(row.nonzero().flatten().tolist()) for row in is_forbidden]


def completions(tokens, length):
    """Tokens that would make the last `length` of them a run seen before, by plain search."""
    runs = {tuple(tokens[i : i + length]) for i in range(len(tokens) - length + 1)}
    latest = tokens[len(tokens) - length + 1 :]
    return {token for token in range(VOCAB) if (*latest, token) in runs}


@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize("num_written", [0, 1, 2, 5, 9])
def test_no_repeat_forbids_what_would_repeat(numbers, length, num_written):
    log_probs, written = numbers[0], numbers[1][:, :num_written]
    expected = [completions(row, length) for row in written.tolist()]
    assert (
        forbidden(log_probs, partial(forbid_repeats, length=length)(log_probs, written)) == expected
    )


@pytest.mark.parametrize(("num_written", "expected"), [(0, {END}), (2, {END}), (3, set())])
def test_end_is_forbidden_before_the_least_length(numbers, num_written, expected):
    log_probs, written = numbers
    after = partial(forbid_end, end=END, min_length=3)(log_probs, written[:, :num_written])
    assert forbidden(log_probs, after) == [expected] * 6


@pytest.mark.parametrize("num_written", [0, 1, 9])
def test_repetition_penalty_multiplies_what_was_written(numbers, num_written):
    log_probs, written = numbers[0], numbers[1][:, :num_written]
    after = partial(penalize_repetition, penalty=1.5)(log_probs, written)
    for row, tokens in enumerate(written.tolist()):
        for token in range(VOCAB):
            factor = 1.5 if token in tokens else 1.0
            assert after[row, token] == log_probs[row, token] * factor


@pytest.mark.parametrize("num_written", range(4))
def test_prefix_of_each_sentence_is_all_that_is_left(numbers, num_written):
    log_probs, written = numbers[0], numbers[1][:, :num_written]
    prefixes = [[4, 1, 2], [], [0]]
    rule = partial(
        force_prefix,
        prefixes=torch.tensor([[4, 1, 2], [0, 0, 0], [0, 3, 3]]),
        lengths=torch.tensor([3, 0, 1]),
    )
    expected = [
        set(range(VOCAB)) - {prefix[num_written]} if num_written < len(prefix) else set()
        for prefix in prefixes
        for _ in range(2)
    ]
    assert forbidden(log_probs, rule(log_probs, written)) == expected


@pytest.mark.parametrize(
    "rule",
    [
        partial(forbid_repeats, length=1),
        partial(forbid_end, end=END, min_length=20),
        partial(penalize_repetition, penalty=2.0),
        partial(
            force_prefix,
            prefixes=torch.ones(6, 20, dtype=torch.long),
            lengths=torch.full((6,), 20),
        ),
    ],
    ids=lambda rule: rule.func.__name__,
)
def test_rules_leave_what_they_are_given_as_it_is(numbers, rule):
    log_probs, written = (tensor.clone() for tensor in numbers)
    changed = rule(*numbers)
    assert not torch.equal(changed, log_probs)
    assert torch.equal(numbers[0], log_probs)
    assert torch.equal(numbers[1], written)


class Spy:
    """A rule that changes nothing and remembers what it was shown."""

    def __init__(self):
        self.seen = []

    def __call__(self, log_probs, written):
        self.seen.append(written.tolist())
        return log_probs


def test_what_was_written_follows_the_hypotheses(tree_scorer, lecture_tree):
    spy = Spy()
    scorer = ConstrainedScorer(tree_scorer(lecture_tree), [spy])
    _, state = scorer.step(torch.tensor([START, START]), scorer.start(2))
    _, state = scorer.step(torch.tensor([0, 1]), state)
    _, state = scorer.step(torch.tensor([2, 2]), reorder(state, torch.tensor([1, 1])))
    assert spy.seen == [[[], []], [[0], [1]], [[1, 2], [1, 2]]]


def test_scorer_without_rules_says_what_the_inner_one_says(tree_scorer, lecture_tree):
    scorer, ruled = tree_scorer(lecture_tree), ConstrainedScorer(tree_scorer(lecture_tree), [])
    state, ruled_state = scorer.start(1), ruled.start(1)
    for token in (START, 0, 2):
        ours, ruled_state = ruled.step(torch.tensor([token]), ruled_state)
        theirs, state = scorer.step(torch.tensor([token]), state)
        assert torch.equal(ours, theirs)
    assert isinstance(ruled_state, State)


def test_rule_that_would_leave_nothing_gives_way(tree_scorer):
    scorer = ConstrainedScorer(
        tree_scorer({(): (0.0, 0.0, 0.0, 1.0)}, {(): (0.3, 0.0, 0.0, 0.7)}),
        [partial(forbid_end, end=END, min_length=2)],
    )
    log_probs, _ = scorer.step(torch.tensor([START, START]), scorer.start(1))
    assert log_probs[0].tolist() == [-math.inf, -math.inf, -math.inf, 0.0]
    assert log_probs[1].tolist() == pytest.approx([math.log(0.3), *[-math.inf] * 3])


def build(config=None, *, prefixes=None, limits=(5, 5)):
    return build_constraints(
        config or SearchConfig(),
        end=END,
        max_lengths=torch.tensor(limits),
        prefixes=prefixes,
        device=torch.device("cpu"),
    )


@pytest.mark.parametrize("prefixes", [None, [[], []], [(), ()]])
def test_defaults_need_no_rules(prefixes):
    assert build(prefixes=prefixes) == []


def test_every_setting_has_its_rule_and_the_prefix_comes_first():
    config = SearchConfig(no_repeat_ngram=2, min_length=3, repetition_penalty=1.2)
    rules = build(config, prefixes=[[1], []])
    assert [rule.func for rule in rules] == [
        force_prefix,
        forbid_repeats,
        forbid_end,
        penalize_repetition,
    ]


def test_prefix_as_long_as_the_limit_is_allowed():
    assert len(build(prefixes=[[1, 2], []], limits=(2, 1))) == 1


def test_prefix_beyond_the_limit_is_refused():
    with pytest.raises(
        ConfigError,
        match=r"`prefix`.*\(2 tokens\), but has 3 tokens\. Shorten",
    ):
        build(prefixes=[[1, 2, 4], [1, 2, 4]], limits=(3, 2))


def test_prefix_that_ends_is_refused():
    with pytest.raises(ConfigError, match=r"`prefix`.* end token \(3\), but is \[1, 3\]\."):
        build(prefixes=[[1, 3], []])
