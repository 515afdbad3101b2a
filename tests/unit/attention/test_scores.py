import math

import pytest
import torch

from regard.attention.scores import SCORES, DotScore
from regard.core.errors import ConfigError

# Formula of each score for one query and one key at position j, from the papers.
FORMULAS = {
    "dot": lambda s, q, k, j: q @ k,
    "scaled_dot": lambda s, q, k, j: q @ k / math.sqrt(len(k)),
    "general": lambda s, q, k, j: q @ (s.key_map.weight @ k),
    "additive": lambda s, q, k, j: (
        s.weight.weight[0]
        @ torch.tanh(s.query_map.weight @ q + s.key_map.weight @ k + s.key_map.bias)
    ),
    "concat": lambda s, q, k, j: (
        s.weight.weight[0] @ torch.tanh(s.joint_map.weight @ torch.cat([q, k]))
    ),
    "location": lambda s, q, k, j: s.position_map.weight[j] @ q,
    "cosine": lambda s, q, k, j: q @ k / (q.norm() * k.norm()),
    "gaussian": lambda s, q, k, j: -(s.sharpness * (q - k)).square().sum() / 2,
}


@pytest.fixture(params=SCORES)
def name(request):
    return request.param


def build_score(name, query_dim=3):
    torch.manual_seed(0)
    key_dim = query_dim if issubclass(SCORES[name], DotScore) else query_dim + 1
    return SCORES[name](query_dim, key_dim, dim=5, max_source=6).double()


def test_every_score_has_a_formula():
    assert set(FORMULAS) == set(SCORES)


def test_score_equals_its_formula(name):
    score = build_score(name)
    if name == "gaussian":
        torch.nn.init.constant_(score.sharpness, 1.7)
    queries = torch.randn(2, 3, score.query_dim, dtype=torch.float64)
    keys = torch.randn(2, 4, score.key_dim, dtype=torch.float64)
    scores = score(queries, score.prepare(keys))
    assert scores.shape == (2, 3, 4)
    for b in range(2):
        for i in range(3):
            for j in range(4):
                expected = FORMULAS[name](score, queries[b, i], keys[b, j], j)
                assert scores[b, i, j].item() == pytest.approx(expected.item(), abs=1e-12)


class Whole(torch.nn.Module):
    """Both halves of a score in one call."""

    def __init__(self, score):
        super().__init__()
        self.score = score

    def forward(self, queries, keys):
        return self.score(queries, self.score.prepare(keys))


def test_gradients_equal_finite_differences(name):
    score = build_score(name)
    queries = torch.randn(1, 2, score.query_dim, dtype=torch.float64, requires_grad=True)
    keys = torch.randn(1, 3, score.key_dim, dtype=torch.float64, requires_grad=True)
    whole = Whole(score)
    names = [name for name, _ in whole.named_parameters()]

    def run(queries, keys, *weights):
        weights_by_name = dict(zip(names, weights, strict=True))
        return torch.func.functional_call(whole, weights_by_name, (queries, keys))

    assert torch.autograd.gradcheck(run, (queries, keys, *whole.parameters()))


def test_leading_axes_are_supported(name):
    score = build_score(name)
    queries = torch.randn(2, 5, 3, score.query_dim, dtype=torch.float64)
    keys = torch.randn(2, 5, 4, score.key_dim, dtype=torch.float64)
    scores = score(queries, score.prepare(keys))
    one = score(queries[1, 2], score.prepare(keys[1, 2]))
    assert torch.allclose(scores[1, 2], one, atol=1e-12)


@pytest.mark.parametrize("dotted", ["dot", "scaled_dot", "cosine", "gaussian"])
def test_error_for_dot_score_of_unequal_widths_recommends_general(dotted):
    with pytest.raises(
        ConfigError,
        match="`score`.*3 and 4 wide.*'general'",
    ):
        SCORES[dotted](3, 4)


def test_location_score_needs_max_source():
    with pytest.raises(
        ConfigError, match=r"^`score` 'location' needs `max_source`, .+, but it is 0\.$"
    ):
        SCORES["location"](3, 4)


def test_location_score_rejects_a_longer_source():
    score = SCORES["location"](3, 4, max_source=5)
    with pytest.raises(
        ConfigError,
        match=r"^`max_source` must be at least the length of the source \(6\) with the 'location' "
        r"score, but is 5\. Train with a larger one or shorten the source\.$",
    ):
        score(torch.zeros(1, 1, 3), torch.zeros(1, 6, 4))


def test_location_score_does_not_depend_on_the_keys():
    score = SCORES["location"](3, 4, max_source=5)
    queries = torch.randn(1, 2, 3)
    scores = [score(queries, torch.randn(1, 5, 4)) for _ in range(2)]
    assert torch.equal(*scores)


def test_hidden_width_defaults_to_the_key_width():
    assert SCORES["additive"](3, 4).weight.in_features == 4
    assert SCORES["additive"](3, 4, dim=7).weight.in_features == 7


def test_cosine_score_does_not_depend_on_norms():
    score = SCORES["cosine"](3, 3)
    queries, keys = torch.randn(2, 3), torch.randn(4, 3)
    scores = score(queries, score.prepare(keys))
    assert torch.allclose(score(5 * queries, score.prepare(0.1 * keys)), scores, atol=1e-6)


def test_gaussian_score_is_maximal_for_equal_query_and_key():
    score = SCORES["gaussian"](3, 3)
    keys = torch.randn(4, 3)
    assert score(keys, score.prepare(keys)).argmax(-1).tolist() == [0, 1, 2, 3]
