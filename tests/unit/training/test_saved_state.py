import copy
import math
import shutil

import pytest

from regard.core.errors import CheckpointError, RegardError
from regard.core.files import read_json, write_json
from regard.training.saved_state import check_state
from tests.faults.attack import changes_of
from tests.training_bench import CAREFUL, Bench, interrupt_at


@pytest.fixture
def stopped(tmp_path):
    """A run of a few steps whose state has all parts, and no checksums."""
    Bench(tmp_path, CAREFUL, before_loss=interrupt_at(7)).run()
    (tmp_path / "resume" / "checksums.json").unlink()
    return tmp_path


def change(state, path, value):
    *parts, name = path.split(".")
    for part in parts:
        state = state[part]
    state[name] = value


def test_states_of_a_training_are_accepted(stopped):
    state = read_json(stopped / "resume" / "training.json")["state"]
    assert {"best", "bad_validations", "num_drops"} == state["schedule"].keys()
    check_state(state, "it")
    older = copy.deepcopy(state)
    del older["progress"]["num_returns"], older["meter"]["with_skipped"]
    check_state(older, "it")


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ("progress", [], "`progress` must be an object, but is []"),
        ("progress.step", "7", "`progress.step` must be an integer, but is '7'"),
        ("progress.step", True, "`progress.step` must be an integer, but is True"),
        ("progress.epoch", -1, "`progress.epoch` must be between 0 and"),
        ("progress.num_returns", -(10**6), "`progress.num_returns` must be between 0 and"),
        ("progress.tokens", 10**400, "`progress.tokens` must be between 0 and"),
        ("progress.seconds", math.inf, "`progress.seconds` must be between 0 and"),
        ("progress.seconds", math.nan, "`progress.seconds` must be between 0 and"),
        ("progress.best", 10**400, "`progress.best` must be a number within"),
        ("progress.other", 1, "`progress.other` is unknown"),
        ("meter", None, "`meter` must be an object, but is None"),
        ("meter.sums", [1.0, 2.0], "`meter.sums` must have 4 numbers"),
        ("meter.sums", [10**400] * 4, "`meter.sums[0]` must be a number within"),
        ("meter.with_skipped", ["a"] * 4, "`meter.with_skipped` must have 4 numbers"),
        ("meter.num_skipped", 2**70, "`meter.num_skipped` must be between 0 and"),
        ("schedule.best", "high", "`schedule.best` must be a number, but is 'high'"),
        ("schedule.num_drops", -5000, "`schedule.num_drops` must be between 0 and"),
    ],
)
def test_state_with_other_values_is_refused_and_named(stopped, path, value, named):
    file = stopped / "resume" / "training.json"
    saved = read_json(file)
    change(saved["state"], path, value)
    write_json(file, saved)
    with pytest.raises(CheckpointError) as raised:
        Bench(stopped, CAREFUL).trainer.resume()
    assert named in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.faults
def test_every_change_of_a_state_is_one_message_or_trains(stopped, tmp_path_factory):
    value = read_json(stopped / "resume" / "training.json")
    parent = tmp_path_factory.mktemp("changed")
    num_refused = 0
    for number, (label, write) in enumerate(changes_of("resume/training.json", value)):
        run = shutil.copytree(stopped, parent / str(number))
        write(run)
        bench = Bench(run, CAREFUL)
        try:
            bench.trainer.resume()
            bench.run()
        except RegardError as error:
            assert "\n" not in str(error) and len(str(error)) < 700, label
            num_refused += 1
        shutil.rmtree(run)
    assert num_refused > 500


def test_state_without_a_part_is_refused_and_named(stopped):
    file = stopped / "resume" / "training.json"
    saved = read_json(file)
    del saved["state"]["meter"]["num_steps"]
    write_json(file, saved)
    with pytest.raises(CheckpointError, match=r"`meter\.num_steps` is missing"):
        Bench(stopped, CAREFUL).trainer.resume()
