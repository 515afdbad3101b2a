import threading
import time
from pathlib import Path

import pytest

from regard.core.errors import ConfigError, DataError
from regard.data.image.field import ImageConfig
from regard.runs.prediction.groups import PAUSE_SECONDS
from regard.runs.prediction.predict import (
    PredictionPipeline,
    PredictOptions,
    SourcePredictions,
    predict_readable,
)
from regard.tasks.classification.recipe import ClassificationDataConfig
from regard.tasks.generation.recipe import DataConfig


def refuse(sources):
    raise DataError(f"{len(sources)} texts are bad.")


def test_readable_sources_are_predicted_once():
    calls = []
    predict_readable(lambda sources: calls.append(sources) or [], ["a", "b"], config=DataConfig())
    assert calls == [["a", "b"]]


def test_other_errors_are_raised_unchanged():
    with pytest.raises(DataError, match="^2 texts are bad.$"):
        predict_readable(refuse, ["a", "b"], config=DataConfig())


def test_single_unreadable_image_is_an_error(tmp_path):
    config = ClassificationDataConfig(source=ImageConfig())
    with pytest.raises(DataError, match="^1 texts are bad.$"):
        predict_readable(refuse, [str(tmp_path / "none.png")], config=config)


class TestPipeline:
    """Pipeline for any number of sources, with options checked once."""

    def test_predictions_equal_those_of_the_task_in_input_order(self, tiny_run, monkeypatch):
        monkeypatch.setattr("regard.runs.prediction.predict.NUM_SOURCES", 2)
        pipeline = PredictionPipeline(tiny_run.predictor, PredictOptions(num_best=2))
        sources = ["a b c", "", "e d"]
        results = list(pipeline(sources))
        assert [result.source for result in results] == sources
        expected = tiny_run.predictor.predict(sources, num_best=2)
        assert [result.texts for result in results] == [[p.text for p in best] for best in expected]
        assert results[0].to_dict()["predictions"][1]["text"] == expected[0][1].text

    def test_sources_are_read_lazily(self, tiny_run, monkeypatch):
        monkeypatch.setattr("regard.runs.prediction.predict.NUM_SOURCES", 1)
        read = []

        def sources():
            for text in ("a b", "c d"):
                read.append(text)
                yield text

        pipeline = PredictionPipeline(tiny_run.predictor, PredictOptions())
        next(iter(pipeline(sources())))
        assert read == ["a b"]

    def test_sources_that_arrive_are_predicted_before_the_next_ones(self, tiny_run):
        read, go_on = [], threading.Event()

        def sources():
            yield "a b"
            assert go_on.wait(60)
            read.append("c d")
            yield "c d"

        results = PredictionPipeline(tiny_run.predictor, PredictOptions())(sources(), is_live=True)
        assert next(results).source == "a b"
        assert read == []
        go_on.set()
        assert [result.source for result in results] == ["c d"]

    def test_unreadable_image_does_not_stop_those_that_arrive_later(self, task_run, messages):
        task = task_run("classification")
        image = next(task.folder.parent.glob("*.png"))
        pipeline = PredictionPipeline(task.predictor, PredictOptions())
        results = list(pipeline(["none.png", str(image)], is_live=True))
        assert results[0].texts == [""]
        assert results[1].predictions

        def one_by_one():
            for source in ("none.png", str(image)):
                yield source
                time.sleep(4 * PAUSE_SECONDS)

        assert list(pipeline(one_by_one(), is_live=True)) == results
        assert any("none.png does not exist" in line for line in messages())
        with pytest.raises(DataError, match="none.png does not exist"):
            list(pipeline(["none.png"], is_live=True))

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
            ({"prefix": "a"}, "`--prefix`.*'sorting'"),
            ({"beams": 2}, "`--beam`.*'sorting'"),
            ({"image_folder": Path("x")}, "`--out`.*'sorting'"),
            ({"chunk_seconds": 3.0}, "`--chunk`.*'sorting'"),
        ],
    )
    def test_options_the_task_does_not_support_are_refused(self, sorting_run, options, message):
        with pytest.raises(ConfigError, match=message):
            PredictionPipeline(sorting_run, PredictOptions(**options))

    def test_chunks_do_not_support_several_predictions(self, tiny_run):
        with pytest.raises(ConfigError, match="`--chunk`.*`--nbest`"):
            PredictionPipeline(tiny_run.predictor, PredictOptions(chunk_seconds=3, num_best=2))
