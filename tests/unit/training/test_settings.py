from dataclasses import replace

import pytest

from regard.core.config import from_dict, to_dict
from regard.core.errors import ConfigError
from regard.training.optimizers import SgdConfig
from regard.training.settings import TrainConfig
from tests.training_bench import CAREFUL


def test_settings_survive_a_round_trip():
    config = replace(CAREFUL, optimizer=SgdConfig(momentum=0.5))
    assert from_dict(TrainConfig, to_dict(config)) == config


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"max_steps": -1}, "`max_steps` must be at least 0, but is -1"),
        ({"max_epochs": -1}, "`max_epochs` must be at least 0"),
        ({"max_minutes": -1.0}, "`max_minutes` must be at least 0"),
        ({"clip_norm": -1.0}, "`clip_norm` must be at least 0"),
        ({"accumulate": 0}, "`accumulate` must be at least 1"),
        ({"log_every": 0}, "`log_every` must be at least 1"),
        ({"validate_every": -1}, "`validate_every` must be at least 0"),
        ({"patience": -1}, "`patience` must be at least 0"),
        ({"average_last": -1}, "`average_last` must be at least 0"),
        (
            {"checkpoint_activations": True, "compile": "always"},
            "`compile` must be 'auto' or 'never' with `checkpoint_activations`",
        ),
        ({"ema_decay": 1.0}, "`ema_decay` must be between 0.0 and 0.99999, but is 1.0"),
        ({"label_smoothing": 1.5}, "`label_smoothing` must be between 0 and 1"),
        ({"teacher_forcing": -0.5}, "`teacher_forcing` must be between 0 and 1"),
        ({"max_epochs": 0, "patience": 0}, "are all 0, so training would never end"),
    ],
)
def test_error_names_the_invalid_setting(values, message):
    with pytest.raises(ConfigError, match=message):
        TrainConfig(**values)
