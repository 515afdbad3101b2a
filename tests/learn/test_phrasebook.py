"""Models of the demo reach their scores; models without attention fall behind."""

import pytest

from regard.data.text.readers import read_examples
from regard.runs import folder as runs
from regard.studies.demo import MODELS
from regard.tasks.generation.evaluation import evaluate

pytestmark = pytest.mark.learn


@pytest.fixture(scope="module")
def demo(learn_phrasebook):
    """Train the first model of `regard demo`."""
    recipe, overrides = MODELS["bahdanau2015"]
    return learn_phrasebook(recipe, *overrides)


def bleu_of_long_sentences(trained):
    test = read_examples(trained.folder / runs.TEST)
    long = [example for example in test if len(example.source.split()) > 20]
    return evaluate(trained.predictor, long).results["bleu"].value


def test_demo_reaches_its_bleu(demo, value):
    assert value(demo, "bleu") >= 95


def test_transformer_of_the_demo_reaches_its_bleu(learn_phrasebook, value):
    recipe, overrides = MODELS["vaswani2017"]
    assert value(learn_phrasebook(recipe, *overrides), "bleu") >= 90


def test_attention_of_the_demo_aligns_words(demo, value):
    assert value(demo, "aer") <= 0.35


@pytest.mark.parametrize(("paper", "bleu"), [("luong2015", 90), ("sutskever2014", 30)])
def test_stacked_lstms_reach_their_bleu(learn_phrasebook, value, paper, bleu):
    assert value(learn_phrasebook(f"{paper}-laptop"), "bleu") >= bleu


@pytest.mark.parametrize("paper", ["cho2014", "sutskever2014"])
def test_fixed_context_falls_behind_on_long_sentences(demo, learn_phrasebook, paper):
    without_attention = learn_phrasebook(f"{paper}-laptop")
    assert bleu_of_long_sentences(without_attention) <= bleu_of_long_sentences(demo) - 5
