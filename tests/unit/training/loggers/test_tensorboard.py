import sys

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from regard.core.errors import ConfigError
from regard.training.loggers.tensorboard import TensorBoardLogger
from tests.training_bench import SHORT, Bench


def read_events(folder):
    """Return the values of all scalars by step, as TensorBoard shows them."""
    events = EventAccumulator(str(folder))
    events.Reload()
    return {
        name: {event.step: event.value for event in events.Scalars(name)}
        for name in events.Tags()["scalars"]
    }


def train(run, config, *, is_resumed=False, before_loss=None):
    loggers = [TensorBoardLogger(run / "tensorboard")]
    bench = Bench(run, config, loggers=loggers, before_loss=before_loss)
    if is_resumed:
        bench.trainer.resume()
    bench.run()
    return bench


def test_events_equal_the_training_log(tmp_path):
    bench = train(tmp_path, SHORT)
    events = read_events(tmp_path / "tensorboard")
    for kind, names in (
        ("train", ("loss", "learning_rate", "gradient_norm", "tokens_per_second")),
        ("valid", ("accuracy",)),
    ):
        for name in names:
            expected = {row["step"]: pytest.approx(row[name]) for row in bench.rows(kind)}
            assert events[f"{kind}/{name}"] == expected


def test_resumed_run_repeats_no_steps(tmp_path):
    def crash(step):
        if step == 9:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        train(tmp_path, SHORT, before_loss=crash)
    train(tmp_path, SHORT, is_resumed=True)
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    # The state was saved at the validation of step 5; the row of step 6 was written twice.
    assert [event.step for event in events.Scalars("train/loss")] == [3, 6, 9]


def test_missing_package_is_named_with_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ConfigError, match=r"pip install 'regard\[board\]'"):
        TensorBoardLogger(tmp_path)
