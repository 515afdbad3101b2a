"""Translation with a picture: what the words leave open, only the picture can tell."""

from dataclasses import replace

import pytest

from regard.data.datasets.catalog import find_data
from regard.runs.request import Request
from regard.runs.train import train

pytestmark = pytest.mark.learn


@pytest.fixture(scope="module")
def learn_translation(tmp_path_factory):
    def learn(data, recipe):
        out = tmp_path_factory.mktemp("learn") / "run"
        return train(Request(data=(data,), recipe=recipe, out=out, device="cpu"))

    return learn


@pytest.fixture(scope="module")
def seeing(learn_translation):
    return learn_translation("scenes:translation", "multimodal-laptop")


def test_colours_are_seen(seeing, value):
    assert value(seeing, "accuracy") > 75


def test_with_wrong_pictures_most_is_wrong(seeing):
    right = find_data("scenes:translation").test
    moved = zip(right, [*right[1:], right[0]], strict=True)
    wrong = [
        replace(example, source=(example.source[0], other.source[1])) for example, other in moved
    ]
    found = seeing.predictor.evaluate(wrong).results
    assert found["accuracy"].value < 20
    # Only colours are wrong: the words say all the rest.
    assert found["bleu"].value > 40


def test_without_pictures_colours_are_guessed(learn_translation, value):
    unseeing = learn_translation("scenes:translation-text", "multimodal-text-laptop")
    assert value(unseeing, "accuracy") < 25
    assert value(unseeing, "bleu") > 40
