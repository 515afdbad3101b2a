"""Extractors of dialogue runs and of sentence vectors, on a tiny run."""

import numpy as np
import pytest
from gather import Finished, Together
from gather_replies import asked_prompts, reply_baselines
from gather_vectors import whiten
from plan import Run
from prepare import shuffle_sources, shuffled_sources

from regard.core.files import read_json_lines
from regard.data.example import Example
from regard.data.splits import Splits

PAIRS = [Example(f"source {i}", f"target {i}") for i in range(20)]


@pytest.fixture
def together(tiny_run):
    finished = [
        Finished(Run(name, "bahdanau2015-laptop", ()), tiny_run.folder, tiny_run.folder)
        for name in ("replies", "no context")
    ]
    return Together(finished, [])


def test_shuffled_sources_keep_targets_in_order():
    shuffled = shuffle_sources(PAIRS)
    assert [one.target for one in shuffled] == [one.target for one in PAIRS]
    assert sorted(one.source for one in shuffled) == sorted(one.source for one in PAIRS)
    assert sum(a.source == b.source for a, b in zip(shuffled, PAIRS, strict=True)) < 5
    assert shuffled == shuffle_sources(PAIRS)


def test_pairs_of_held_out_sources_are_dropped_before_shuffling(tmp_path, monkeypatch):
    leaked = Example(PAIRS[0].source, "not trained on")
    splits = Splits([leaked, *PAIRS[10:]], PAIRS[:5], PAIRS[5:10], "")
    monkeypatch.setattr("prepare.find_data", lambda name: splits)
    shuffled_sources(tmp_path, {"data": "pairs"})
    rows = read_json_lines(tmp_path / "train.jsonl")
    assert [row["target"] for row in rows] == [one.target for one in PAIRS[10:]]
    assert {row["source"] for row in rows} == {one.source for one in PAIRS[10:]}


def test_baselines_have_perplexities(together):
    found = reply_baselines(together, {"run": "replies", "without": "no context"})
    rows = {row["name"]: row["perplexity"]["value"] for row in found["baselines"]}
    assert list(rows) == [
        "context", "context of another reply", "trained without context", "unigram model",
    ]  # fmt: skip
    # Both runs are the same here.
    assert rows["context of another reply"] == rows["trained without context"]
    assert min(rows.values()) > 1
    assert {"text", "count", "bleu", "accuracy"} <= {*found["frequent"]}


def test_equal_runs_with_the_same_contexts_have_equal_ratios(together):
    found = reply_baselines(together, {"run": "replies", "without": "no context"})
    context, other, without, _ = found["baselines"]
    assert other["ratio"] == without["ratio"]
    expected = other["perplexity"]["value"] / context["perplexity"]["value"]
    assert other["ratio"]["value"] == pytest.approx(expected)


def test_prompts_and_replies_alternate(together):
    searches = [
        {"name": "greedy", "run": "replies", "beams": 1},
        {"name": "sampling", "run": "no context", "temperature": 0.8, "seed": 1},
        {"name": "other", "run": "not finished"},
    ]
    conversations = [["abc"], ["abc", "bca", "cab"]]
    argument = {"searches": searches, "conversations": conversations}
    greedy, sampling = asked_prompts(together, argument)["asked"]
    first, second = greedy["turns"]
    assert len(first) == 2 and first[0] == "abc"
    assert second[::2] == ["abc", "bca", "cab"] and second[1] == first[1]
    assert sampling["name"] == "sampling" and len(sampling["turns"]) == 2


def test_runs_that_are_not_finished_have_no_baselines(together):
    assert reply_baselines(together, {"run": "replies", "without": "other"}) == {}
    searches = [{"name": "greedy", "run": "other"}]
    assert asked_prompts(together, {"searches": searches, "conversations": []}) == {}


def test_whitened_vectors_have_unit_covariance():
    generator = np.random.default_rng(1)
    mixed = generator.normal(size=(500, 4)) @ generator.normal(size=(4, 4)) + 3
    whitened = whiten(mixed.astype(np.float32), mixed.astype(np.float32))
    assert np.allclose(np.cov(whitened.T), np.eye(4), atol=1e-3)
