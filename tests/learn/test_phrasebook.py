"""The demo's data: what a few minutes of training must reach, and what attention is good for."""

import pytest

from regard.data.datasets import find_data
from regard.tasks.evaluation import evaluate

pytestmark = pytest.mark.learn


@pytest.fixture(scope="module")
def demo(learn_phrasebook):
    """What `regard demo` trains, with another seed."""
    return learn_phrasebook("bahdanau2015")


def test_demo_translates_well(demo, value):
    assert value(demo, "bleu") >= 95


def test_demo_looks_at_the_words_it_translates(demo, value):
    assert value(demo, "aer") <= 0.35


@pytest.fixture(scope="module")
def bleu_of_long_sentences(learn_phrasebook):
    """A paper to BLEU on sentences of more than 20 words, after short training."""
    long = [e for e in find_data("phrasebook").test if len(e.source.split()) > 20]

    def measure(paper):
        trained = learn_phrasebook(paper, "train.max_epochs=4", data="phrasebook:8000")
        return evaluate(trained.predictor, long).results["bleu"].value

    return measure


@pytest.fixture(scope="module")
def with_attention(bleu_of_long_sentences):
    return bleu_of_long_sentences("bahdanau2015")


@pytest.mark.parametrize("paper", ["cho2014", "sutskever2014"])
def test_fixed_context_falls_behind_on_long_sentences(
    bleu_of_long_sentences, with_attention, paper
):
    assert bleu_of_long_sentences(paper) <= with_attention - 5
