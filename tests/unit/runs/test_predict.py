import pytest

from regard.core.errors import DataError
from regard.data.image.field import ImageConfig
from regard.runs.predict import answer_readable
from regard.tasks.classification.recipe import ClassificationDataConfig
from regard.tasks.generation.recipe import DataConfig


def refuse(sources):
    raise DataError(f"{len(sources)} texts are bad.")


def test_what_is_answered_is_asked_once():
    asked = []
    answer_readable(lambda sources: asked.append(sources) or [], ["a", "b"], config=DataConfig())
    assert asked == [["a", "b"]]


def test_error_that_is_not_about_reading_is_raised_as_it_is():
    with pytest.raises(DataError, match="^2 texts are bad.$"):
        answer_readable(refuse, ["a", "b"], config=DataConfig())


def test_single_bad_image_is_an_error_of_its_own(tmp_path):
    config = ClassificationDataConfig(source=ImageConfig())
    with pytest.raises(DataError, match="^1 texts are bad.$"):
        answer_readable(refuse, [str(tmp_path / "none.png")], config=config)
