"""The class for Ray predicts what the run predicts."""

import secrets

import numpy as np
import pytest

from regard.core.errors import DataError
from regard.interop.ray import Predictor

SOURCES = ["a b c", "", "b a"]


def test_rows_get_the_predictions_of_the_run(tiny_run):
    predictor = Predictor(tiny_run.folder, source="line", target="translation", beams=1)
    batch = {"line": np.array(SOURCES, dtype=object), "number": np.arange(3)}
    rows = predictor(batch)
    expected = tiny_run.predictor.predict(
        SOURCES, search=tiny_run.predictor.search.__class__(beams=1)
    )
    assert list(rows) == ["line", "number", "translation", "translation_log_prob"]
    assert rows["translation"].tolist() == [best[0].text for best in expected]
    assert rows["translation_log_prob"] == pytest.approx([best[0].log_prob for best in expected])
    assert rows["number"].tolist() == [0, 1, 2]


def test_predictions_do_not_depend_on_the_batch(tiny_run):
    predictor = Predictor(tiny_run.folder)
    together = predictor({"text": np.array(SOURCES, dtype=object)})["prediction"].tolist()
    alone = [predictor({"text": np.array([one])})["prediction"][0] for one in SOURCES]
    assert together == alone


def test_an_empty_batch_has_no_predictions(tiny_run):
    rows = Predictor(tiny_run.folder)({"text": np.array([], dtype=object)})
    assert rows["prediction"].tolist() == rows["prediction_log_prob"].tolist() == []


def test_a_missing_column_is_an_error(tiny_run):
    predictor = Predictor(tiny_run.folder, source="txt")
    with pytest.raises(DataError, match="is 'txt'. Did you mean 'text'. Columns: text, id."):
        predictor({"text": np.array(["a"]), "id": np.array([1])})


# Ray uses functions of its own that are deprecated.
@pytest.mark.filterwarnings("ignore")
def test_ray_maps_batches_of_a_data_set(tiny_run, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    # Otherwise Ray writes a token to the home folder of the user.
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    (tmp_path / "token").write_text(secrets.token_hex(32))
    # More CPUs than actors: their reservation would leave none to read the rows.
    ray.init(num_cpus=4, include_dashboard=False)
    try:
        rows = ray.data.from_items([{"text": source} for source in SOURCES * 4]).map_batches(
            Predictor,
            fn_constructor_args=[str(tiny_run.folder)],
            fn_constructor_kwargs={"device": "cpu"},
            batch_size=5,
            compute=ray.data.ActorPoolStrategy(size=2),
        )
        found = {row["text"]: row["prediction"] for row in rows.take_all()}
    finally:
        ray.shutdown()
    expected = tiny_run.predictor.translate(SOURCES)
    assert found == dict(zip(SOURCES, expected, strict=True))
