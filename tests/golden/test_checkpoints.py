from pathlib import Path

import pytest

import regard
from regard.core.files import read_json

FOLDERS = sorted((Path(__file__).parent / "checkpoints").iterdir())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_run_folder_of_an_earlier_version_gives_the_same_predictions(folder):
    expected = read_json(folder / "expected.json")["answers"]
    found = regard.load(folder, "cpu").predict([row["source"] for row in expected], num_best=2)
    for row, predictions in zip(expected, found, strict=True):
        assert [one.text for one in predictions] == [one["text"] for one in row["predictions"]]
        assert [one.log_prob for one in predictions] == pytest.approx(
            [one["log_prob"] for one in row["predictions"]], abs=1e-4
        )
