import json
import math

import pytest

from regard.core.errors import ConfigError
from regard.plots.tree import walk
from regard.search.settings import SearchConfig
from regard.tasks.decoding.beam_tree import find_beam_tree

SOURCE = "a b c d e"


@pytest.fixture(scope="module")
def predictor(tiny_run):
    return tiny_run.predictor


def tokens_to(tree, node):
    found = []
    while node is not None:
        found.append(node.token)
        node = None if node.parent is None else tree.nodes[node.parent]
    return tuple(found[::-1])


@pytest.mark.parametrize(
    "settings",
    [
        {"beams": 1},
        {"beams": 4},
        {"beams": 4, "groups": 2},
        {"beams": 3, "coverage_penalty": 1.0},
        {"beams": 2, "consensus": 4, "consensus_metric": "chrf"},
    ],
)
def test_ranks_are_those_of_the_predictions(predictor, settings):
    search = SearchConfig(**settings)
    tree = find_beam_tree(predictor, SOURCE, search=search)
    (expected,) = predictor.predict([SOURCE], search=search, num_best=search.beams)
    assert [one.tokens for one in tree.predictions] == [one.tokens for one in expected]
    ranked = {node.rank: node for node in tree.nodes if node.rank}
    assert sorted(ranked) == list(range(1, len(expected) + 1))
    for rank, node in ranked.items():
        prediction = expected[rank - 1]
        assert tokens_to(tree, node) == prediction.tokens
        assert node.total == pytest.approx(prediction.log_prob, abs=1e-5)
        assert node.step == len(prediction.tokens) and node.is_finished


def test_tree_is_json(predictor):
    tree = find_beam_tree(predictor, SOURCE, search=SearchConfig(beams=3))
    values = json.loads(json.dumps(tree.to_dict()))
    assert values["source"] == SOURCE and values["prediction"] == tree.predictions[0].text
    assert [node["id"] for node in values["nodes"]] == list(range(len(tree.nodes)))
    assert set(values["nodes"][0]) == {
        "id", "parent", "step", "token", "log_prob", "total", "is_finished", "rank",
    }  # fmt: skip


def test_branches_lead_to_the_best_prediction(predictor):
    tree = find_beam_tree(predictor, SOURCE, search=SearchConfig(beams=3))
    branches = list(walk(tree.branches))
    assert len(branches) == len(tree.nodes)
    best = [one for one in branches if one.status == "result"]
    names = [token.removeprefix("▁") or token for token in tree.predictions[0].tokens]
    assert [one.token for one in best] == names
    assert best[-1].note == "#1"
    assert math.log(best[-1].total) == pytest.approx(tree.predictions[0].log_prob, abs=1e-5)
    kept = [one for one in branches if one.status == "kept"]
    assert {one.note for one in kept} >= {"#2", "#3"}


def test_tree_of_a_language_model_begins_with_its_text(language_task):
    tree = find_beam_tree(language_task, "the", search=SearchConfig(beams=2, max_extra=4))
    assert tree.predictions[0].text.startswith("the")
    assert sum(node.step == 1 for node in tree.nodes) == 1


@pytest.mark.parametrize(
    ("source", "settings", "message"),
    [
        (SOURCE, {"temperature": 1.0}, r"needs beam search, but `search\.temperature` is 1"),
        ("", {"beams": 2}, "needs a source to search for"),
    ],
)
def test_searches_without_a_tree_are_refused(predictor, source, settings, message):
    with pytest.raises(ConfigError, match=message):
        find_beam_tree(predictor, source, search=SearchConfig(**settings))


def test_other_tasks_are_refused(sorting_run):
    with pytest.raises(ConfigError, match="beam tree is for models.*'sorting'"):
        find_beam_tree(sorting_run, SOURCE)
