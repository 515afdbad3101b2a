"""Questions about stories are answered better than by chance."""

import pytest

from regard.runs.request import Request
from regard.runs.train import train

pytestmark = pytest.mark.learn


@pytest.fixture(scope="module")
def trained(data_folder, tmp_path_factory):
    if not (data_folder / "babi" / "babi_en_1k.zip").is_file():
        pytest.skip("REGARD_DATA has no babi/babi_en_1k.zip")
    request = Request(
        data=("babi:1,4,6",),
        recipe="babi-laptop",
        out=tmp_path_factory.mktemp("learn") / "run",
        device="cpu",
    )
    return train(request)


# Chance is a sixth in task 1 and a half in task 6.
@pytest.mark.parametrize(
    ("task", "threshold"),
    [("01 single supporting fact", 90), ("04 two arg relations", 85), ("06 yes no questions", 85)],
)
def test_each_task_is_learned(trained, task, threshold):
    (found,) = (group for group in trained.evaluation.by_tag if group.name == task)
    assert found.count == 1000
    assert found.results["accuracy"].value > threshold


def test_attention_is_on_the_supporting_sentence(trained):
    assert trained.evaluation.results["aer"].detail["precision"] > 0.8
