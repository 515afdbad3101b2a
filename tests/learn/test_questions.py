"""Visual question answering on single shapes and scenes."""

import pytest

from regard.core.errors import DataError

pytestmark = pytest.mark.learn


def test_questions_about_one_shape_are_learned(learn_scenes, value):
    try:
        trained = learn_scenes("easy-vqa", "easy-vqa-laptop")
    except DataError as error:
        pytest.skip(str(error))
    assert value(trained, "accuracy") >= 97


def test_questions_about_scenes_are_learned(learn_scenes, captioner, value):
    overrides = (f"init_from={captioner.folder}", 'train.freeze=["encoder.image"]')
    trained = learn_scenes("scenes:questions,60000", "scenes-questions-laptop", *overrides)
    assert value(trained, "accuracy") >= 75
    by_kind = {group.name: group.results["accuracy"].value for group in trained.evaluation.by_tag}
    # From the question alone: 39 and 23 %.
    assert by_kind["exists"] >= 90
    assert by_kind["attribute"] >= 85
