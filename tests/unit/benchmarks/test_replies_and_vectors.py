"""Extractors of dialogue runs and of sentence vectors, on a tiny run."""

import numpy as np
import pytest
from gather import Finished, Together
from gather_replies import asked_prompts, reply_baselines
from gather_vectors import whiten
from plan import Run
from prepare import shuffle_sources

from regard.data.example import Example

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


def test_prompts_and_replies_alternate(together):
    conversations = [["abc"], ["abc", "bca", "cab"]]
    found = asked_prompts(together, {"run": "replies", "conversations": conversations})
    first, second = found["conversations"]
    assert len(first) == 2 and first[0] == "abc"
    assert second[::2] == ["abc", "bca", "cab"] and second[1] == first[1]


def test_runs_that_are_not_finished_have_no_baselines(together):
    assert reply_baselines(together, {"run": "replies", "without": "other"}) == {}
    assert asked_prompts(together, {"run": "other", "conversations": []}) == {}


def test_whitened_vectors_have_unit_covariance():
    generator = np.random.default_rng(1)
    mixed = generator.normal(size=(500, 4)) @ generator.normal(size=(4, 4)) + 3
    whitened = whiten(mixed.astype(np.float32), mixed.astype(np.float32))
    assert np.allclose(np.cov(whitened.T), np.eye(4), atol=1e-3)
