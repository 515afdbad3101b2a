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
def scores_and_tokens(request):
    generator = torch.Generator().manual_seed(request.param)
    log_probs = torch.randn(6, VOCAB, generator=generator).log_softmax(1)
    generated = torch.randint(0, VOCAB, (6, 9), generator=generator)
    return log_probs, generated


def forbidden(before, after):
    """Forbidden tokens of each row; all others must be unchanged."""
    is_forbidden = after == -torch.inf
    assert torch.equal(after[~is_forbidden], before[~is_forbidden])
    return [set(row.nonzero().flatten().tolist()) for row in is_forbidden]


def completions(tokens, length):
    """Tokens that would make the last `length` of them a repeated n-gram, by enumeration."""
    runs = {tuple(tokens[i : i + length]) for i in range(len(tokens) - length + 1)}
    latest = tokens[len(tokens) - length + 1 :]
    return {token for token in range(VOCAB) if (*latest, token) in runs}


@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize("num_generated", [0, 1, 2, 5, 9])
def test_no_repeat_forbids_tokens_that_repeat_an_ngram(scores_and_tokens, length, num_generated):
    log_probs, generated = scores_and_tokens[0], scores_and_tokens[1][:, :num_generated]
    expected = [completions(row, length) for row in generated.tolist()]
    assert (
        forbidden(log_probs, partial(forbid_repeats, length=length)(log_probs, generated))
        == expected
    )


@pytest.mark.parametrize(("num_generated", "expected"), [(0, {END}), (2, {END}), (3, set())])
def test_end_token_is_forbidden_before_the_minimum_length(
    scores_and_tokens, num_generated, expected
):
    log_probs, generated = scores_and_tokens
    after = partial(forbid_end, end=END, min_length=3)(log_probs, generated[:, :num_generated])
    assert forbidden(log_probs, after) == [expected] * 6


@pytest.mark.parametrize("num_generated", [0, 1, 9])
def test_repetition_penalty_multiplies_generated_tokens(scores_and_tokens, num_generated):
    log_probs, generated = scores_and_tokens[0], scores_and_tokens[1][:, :num_generated]
    after = partial(penalize_repetition, penalty=1.5)(log_probs, generated)
    for row, tokens in enumerate(generated.tolist()):
        for token in range(VOCAB):
            factor = 1.5 if token in tokens else 1.0
            assert after[row, token] == log_probs[row, token] * factor


@pytest.mark.parametrize("num_generated", range(4))
def test_only_the_prefix_of_each_sentence_is_allowed(scores_and_tokens, num_generated):
    log_probs, generated = scores_and_tokens[0], scores_and_tokens[1][:, :num_generated]
    prefixes = [[4, 1, 2], [], [0]]
    constraint = partial(
        force_prefix,
        prefixes=torch.tensor([[4, 1, 2], [0, 0, 0], [0, 3, 3]]),
        lengths=torch.tensor([3, 0, 1]),
    )
    expected = [
        set(range(VOCAB)) - {prefix[num_generated]} if num_generated < len(prefix) else set()
        for prefix in prefixes
        for _ in range(2)
    ]
    assert forbidden(log_probs, constraint(log_probs, generated)) == expected


@pytest.mark.parametrize(
    "constraint",
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
    ids=lambda constraint: constraint.func.__name__,
)
def test_constraints_do_not_modify_their_arguments(scores_and_tokens, constraint):
    log_probs, generated = (tensor.clone() for tensor in scores_and_tokens)
    changed = constraint(*scores_and_tokens)
    assert not torch.equal(changed, log_probs)
    assert torch.equal(scores_and_tokens[0], log_probs)
    assert torch.equal(scores_and_tokens[1], generated)


class RecordingConstraint:
    """Constraint that changes nothing and records its arguments."""

    def __init__(self):
        self.seen = []

    def __call__(self, log_probs, generated):
        self.seen.append(generated.tolist())
        return log_probs


def test_generated_tokens_follow_reordered_hypotheses(tree_scorer, lecture_tree):
    constraint = RecordingConstraint()
    scorer = ConstrainedScorer(tree_scorer(lecture_tree), [constraint])
    _, state = scorer.step(torch.tensor([START, START]), scorer.start(2))
    _, state = scorer.step(torch.tensor([0, 1]), state)
    _, state = scorer.step(torch.tensor([2, 2]), reorder(state, torch.tensor([1, 1])))
    assert constraint.seen == [[[], []], [[0], [1]], [[1, 2], [1, 2]]]


def test_scorer_without_constraints_equals_the_inner_scorer(tree_scorer, lecture_tree):
    scorer, constrained = (
        tree_scorer(lecture_tree),
        ConstrainedScorer(tree_scorer(lecture_tree), []),
    )
    state, constrained_state = scorer.start(1), constrained.start(1)
    for token in (START, 0, 2):
        ours, constrained_state = constrained.step(torch.tensor([token]), constrained_state)
        theirs, state = scorer.step(torch.tensor([token]), state)
        assert torch.equal(ours, theirs)
    assert isinstance(constrained_state, State)


def test_constraint_that_forbids_everything_is_ignored(tree_scorer):
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
def test_defaults_need_no_constraints(prefixes):
    assert build(prefixes=prefixes) == []


def test_every_setting_has_a_constraint_and_the_prefix_comes_first():
    config = SearchConfig(no_repeat_ngram=2, min_length=3, repetition_penalty=1.2)
    constraints = build(config, prefixes=[[1], []])
    assert [constraint.func for constraint in constraints] == [
        force_prefix,
        forbid_repeats,
        forbid_end,
        penalize_repetition,
    ]


def test_prefix_as_long_as_the_limit_is_allowed():
    assert len(build(prefixes=[[1, 2], []], limits=(2, 1))) == 1


def test_prefix_longer_than_the_limit_is_an_error():
    with pytest.raises(
        ConfigError,
        match=r"`prefix`.*\(2 tokens\), but has 3 tokens\. Shorten",
    ):
        build(prefixes=[[1, 2, 4], [1, 2, 4]], limits=(3, 2))


def test_prefix_with_the_end_token_is_an_error():
    with pytest.raises(ConfigError, match=r"`prefix`.* end token \(3\), but is \[1, 3\]\."):
        build(prefixes=[[1, 3], []])
