import pytest

from benchmarks import side_by_side
from benchmarks.side_by_side import Run, train_all
from regard.runs import folder as runs


@pytest.fixture
def trained(monkeypatch):
    """What is trained, in the order in which it ends."""
    found = []
    monkeypatch.setattr(side_by_side, "_train", lambda run, place, **_: found.append(place))
    return found


def run_all(*planned):
    train_all([*planned], jobs=2, threads=1, words=[])


def test_a_run_waits_for_one_of_its_experiment_and_for_one_of_another(trained, tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    run_all(
        (Run("first", "x", ()), there),
        (Run("second", "x", (), needs=("there/first-seed1",)), here),
        (Run("third", "x", (), needs=("second-seed1",)), here),
    )
    assert trained == [there / "first-seed1", here / "second-seed1", here / "third-seed1"]


def test_what_is_finished_need_not_be_planned(trained, tmp_path):
    before = tmp_path / "there" / "first-seed1"
    before.mkdir(parents=True)
    (before / runs.METRICS).write_text("{}")
    run_all((Run("second", "x", (), needs=("there/first-seed1",)), tmp_path / "here"))
    assert trained == [tmp_path / "here" / "second-seed1"]


def test_what_nobody_trains_is_asked_for(trained, tmp_path):
    with pytest.raises(SystemExit, match="first-seed1 is needed first. Name its experiment"):
        run_all((Run("second", "x", (), needs=("there/first-seed1",)), tmp_path / "here"))


def test_what_need_not_wait_starts_in_the_order_of_the_plan(trained, tmp_path):
    planned = [(Run(str(number), "x", ()), tmp_path) for number in range(30)]
    train_all(planned, jobs=1, threads=1, words=[])
    assert trained == [tmp_path / run.folder for run, _ in planned]


def test_nothing_to_train_is_no_fault(trained):
    run_all()
    assert trained == []
