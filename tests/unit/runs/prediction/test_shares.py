"""Prediction by several processes writes what one process writes."""

from pathlib import Path

import pytest

from regard.core.errors import ConfigError
from regard.runs.prediction import shares as shared_prediction
from regard.runs.prediction.shares import check_shared, predict_shares
from regard.training.distributed.joining import join_processes
from tests.processes import run_processes


def predict(group, first):
    return "".join(f"{number}\t{text.upper()}\n" for number, text in enumerate(group, first))


def predict_in_threes(out, num):
    shared_prediction.NUM_SOURCES = 3
    with join_processes("cpu") as processes:
        sources = (f"line {number}" for number in range(1, num + 1))
        predict_shares(sources, out, processes=processes, predict=predict)
    return sorted(path.name for path in out.parent.iterdir())


@pytest.mark.parametrize(("num", "num_processes"), [(20, 2), (9, 3), (2, 2), (0, 2)])
def test_predictions_of_several_processes_are_in_order(tmp_path, num, num_processes):
    listings = run_processes(num_processes, predict_in_threes, tmp_path / "out.txt", num)
    assert (tmp_path / "out.txt").read_text() == predict(
        [f"line {number}" for number in range(1, num + 1)], 1
    )
    assert "out.txt" in listings[0]
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]


@pytest.mark.parametrize(
    ("source", "out", "message"),
    [
        ("-", "out.txt", "Standard input can be read by one process only"),
        ("file.txt", None, "need a file. Name one with `--out`"),
        ("file.txt", Path("/dev/full"), "must be a file, but /dev/full is a device"),
        ("file.txt", Path("/dev"), "must be a file, but /dev is a folder"),
    ],
)
def test_what_several_processes_cannot_read_or_write_is_an_error(tiny_run, source, out, message):
    with pytest.raises(ConfigError, match=message):
        check_shared(tiny_run.predictor, source, out)
