"""Faithfulness is the loss of probability that erasure by hand gives."""

import numpy as np
import pytest

from regard.data.example import Example
from regard.interpret import faithfulness
from regard.interpret.attribution import attribute, by_erasure
from regard.interpret.faithfulness import measure_faithfulness, random_faithfulness
from regard.interpret.passes import force
from tests.unit.interpret.conftest import FAMILIES

SOURCE, TARGET = "a c e b", "v y z"


def probs(task, source, target=TARGET):
    (scored,) = task.score([Example(source, target)])
    return np.exp(scored.token_log_probs)


@pytest.mark.parametrize("family", FAMILIES)
def test_measures_are_those_of_shortened_sources(family, untrained_run, monkeypatch):
    monkeypatch.setattr(faithfulness, "SHARES", (0.25, 0.5))
    task = untrained_run(family)
    # For all outputs, the order is e, a, b, c; the end token is not ranked.
    scores = np.tile([3.0, 1.0, 4.0, 2.0, 9.0], (4, 1))
    found = measure_faithfulness(force(task, SOURCE, TARGET), scores)
    whole = probs(task, SOURCE)
    without = [whole - probs(task, source) for source in ("a c b", "c b")]
    alone = [whole - probs(task, source) for source in ("e", "a e")]
    assert found.comprehensiveness == pytest.approx(np.mean(without), abs=1e-5)
    assert found.sufficiency == pytest.approx(np.mean(alone), abs=1e-5)


def test_each_output_has_its_own_order(tiny_run, monkeypatch):
    monkeypatch.setattr(faithfulness, "SHARES", (0.01,))
    task = tiny_run.predictor
    found = measure_faithfulness(force(task, "a b c", "c b a"), np.fliplr(np.eye(4))[[1, 2, 3, 0]])
    whole = probs(task, "a b c", "c b a")
    # The outputs rank c, b and a first; no word is ranked first for the end token.
    without = [probs(task, source, "c b a") for source in ("a b", "a c", "b c", "b c")]
    expected = np.mean([whole[row] - without[row][row] for row in range(4)])
    assert found.comprehensiveness == pytest.approx(expected, abs=1e-5)


def test_erasure_is_more_faithful_than_random_scores(tiny_run):
    forced = force(tiny_run.predictor, "a b c d e")
    found = measure_faithfulness(forced, by_erasure(forced).source)
    random = random_faithfulness(forced)
    assert found.comprehensiveness > random.comprehensiveness + 0.05
    assert random == random_faithfulness(forced)


def test_explanation_has_the_measures_of_each_method(text_classifier):
    explained = attribute(
        text_classifier, "the big dog", methods=["gradients", "erasure"], is_measured=True
    )
    values = explained.to_dict()
    for one in (*values["attributions"], {"faithfulness": values["random"]}):
        assert set(one["faithfulness"]) == {"comprehensiveness", "sufficiency"}
    assert "random" not in attribute(text_classifier, "the big dog").to_dict()


def test_source_without_words_has_nothing_to_leave_out(untrained_run):
    task = untrained_run("rnn")
    forced = force(task, SOURCE, TARGET)
    forced.source.is_free[:] = False
    assert measure_faithfulness(forced, np.zeros((4, 5))).comprehensiveness == 0
