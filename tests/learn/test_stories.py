"""Questions about stories: a small model must do better than what can be guessed."""

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


# Whoever guesses is right in a sixth of task 1, a half of task 6.
@pytest.mark.parametrize(
    ("task", "enough"),
    [("01 single supporting fact", 90), ("04 two arg relations", 85), ("06 yes no questions", 85)],
)
def test_each_task_is_learned(trained, task, enough):
    (found,) = (group for group in trained.evaluation.by_tag if group.name == task)
    assert found.count == 1000
    assert found.results["accuracy"].value > enough


def test_it_looks_at_the_sentence_that_justifies_the_answer(trained):
    assert trained.evaluation.results["aer"].detail["precision"] > 0.8
