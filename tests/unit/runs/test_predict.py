from pathlib import Path

import pytest

from regard.core.errors import ConfigError, DataError
from regard.data.image.field import ImageConfig
from regard.runs.predict import (
    PredictionPipeline,
    PredictOptions,
    SourcePredictions,
    predict_readable,
)
from regard.tasks.classification.recipe import ClassificationDataConfig
from regard.tasks.generation.recipe import DataConfig


def refuse(sources):
    raise DataError(f"{len(sources)} texts are bad.")


def test_what_is_answered_is_asked_once():
    asked = []
    predict_readable(lambda sources: asked.append(sources) or [], ["a", "b"], config=DataConfig())
    assert asked == [["a", "b"]]


def test_error_that_is_not_about_reading_is_raised_as_it_is():
    with pytest.raises(DataError, match="^2 texts are bad.$"):
        predict_readable(refuse, ["a", "b"], config=DataConfig())


def test_single_bad_image_is_an_error_of_its_own(tmp_path):
    config = ClassificationDataConfig(source=ImageConfig())
    with pytest.raises(DataError, match="^1 texts are bad.$"):
        predict_readable(refuse, [str(tmp_path / "none.png")], config=config)


class TestPipeline:
    """What a server calls: checked once, then any number of sources."""

    def test_predictions_are_those_of_the_task_in_order(self, tiny_run, monkeypatch):
        monkeypatch.setattr("regard.runs.predict.NUM_TOGETHER", 2)
        pipeline = PredictionPipeline(tiny_run.predictor, PredictOptions(num_best=2))
        sources = ["a b c", "", "e d"]
        found = list(pipeline(sources))
        assert [one.source for one in found] == sources
        expected = tiny_run.predictor.predict(sources, num_best=2)
        assert [one.texts for one in found] == [[p.text for p in best] for best in expected]
        assert found[0].to_dict()["predictions"][1]["text"] == expected[0][1].text

    def test_sources_are_read_when_they_are_needed(self, tiny_run, monkeypatch):
        monkeypatch.setattr("regard.runs.predict.NUM_TOGETHER", 1)
        asked = []

        def sources():
            for text in ("a b", "c d"):
                asked.append(text)
                yield text

        pipeline = PredictionPipeline(tiny_run.predictor, PredictOptions())
        next(iter(pipeline(sources())))
        assert asked == ["a b"]

    def test_unreadable_source_has_an_empty_text(self):
        assert SourcePredictions("none.png").texts == [""]
        assert SourcePredictions("none.wav", segments=[]).to_dict() == {
            "source": "none.wav",
            "text": "",
            "parts": [],
        }

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"prefix": "a"}, "`--prefix` is for models that write their answer"),
            ({"beams": 2}, "`--beam` is for models that search"),
            ({"image_folder": Path("x")}, "`--out` is for models that answer with images"),
            ({"chunk_seconds": 3.0}, "`--chunk` is for models that write what they hear"),
        ],
    )
    def test_options_that_do_not_fit_the_task_are_refused(self, sorting_run, options, message):
        with pytest.raises(ConfigError, match=message):
            PredictionPipeline(sorting_run, PredictOptions(**options))

    def test_chunks_have_one_prediction_each(self, tiny_run):
        with pytest.raises(ConfigError, match="`--chunk` gives one answer made of many"):
            PredictionPipeline(tiny_run.predictor, PredictOptions(chunk_seconds=3, num_best=2))
