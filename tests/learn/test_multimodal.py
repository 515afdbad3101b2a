"""Multimodal translation: colours are only in the image."""

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
def multimodal(learn_translation):
    return learn_translation("scenes:translation", "multimodal-laptop")


def test_colours_are_translated_from_the_image(multimodal, value):
    assert value(multimodal, "accuracy") > 75


def test_exchanged_images_give_wrong_colours(multimodal):
    right = find_data("scenes:translation").test
    moved = zip(right, [*right[1:], right[0]], strict=True)
    wrong = [
        replace(example, source=(example.source[0], other.source[1])) for example, other in moved
    ]
    found = multimodal.predictor.evaluate(wrong).results
    assert found["accuracy"].value < 20
    # Only colours are wrong: the source has everything else.
    assert found["bleu"].value > 40


def test_colours_are_wrong_without_images(learn_translation, value):
    text_only = learn_translation("scenes:translation-text", "multimodal-text-laptop")
    assert value(text_only, "accuracy") < 25
    assert value(text_only, "bleu") > 40
