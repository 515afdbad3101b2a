"""The demo's data: what a few minutes of training must reach, and what attention is good for."""

import pytest

from regard.data.text.readers import read_examples
from regard.runs import folder as runs
from regard.studies.demo import MODELS
from regard.tasks.generation.evaluation import evaluate

pytestmark = pytest.mark.learn


@pytest.fixture(scope="module")
def demo(learn_phrasebook):
    """What `regard demo` trains first, with another seed."""
    recipe, words = MODELS["bahdanau2015"]
    return learn_phrasebook(recipe, *words)


def bleu_of_long_sentences(trained):
    test = read_examples(trained.folder / runs.TEST)
    long = [example for example in test if len(example.source.split()) > 20]
    return evaluate(trained.predictor, long).results["bleu"].value


def test_demo_translates_well(demo, value):
    assert value(demo, "bleu") >= 95


def test_transformer_of_the_demo_translates_well(learn_phrasebook, value):
    recipe, words = MODELS["vaswani2017"]
    assert value(learn_phrasebook(recipe, *words), "bleu") >= 90


def test_demo_looks_at_the_words_it_translates(demo, value):
    assert value(demo, "aer") <= 0.35


@pytest.mark.parametrize("paper", ["cho2014", "sutskever2014"])
def test_fixed_context_falls_behind_on_long_sentences(demo, learn_phrasebook, paper):
    without_attention = learn_phrasebook(f"{paper}-laptop")
    assert bleu_of_long_sentences(without_attention) <= bleu_of_long_sentences(demo) - 5
