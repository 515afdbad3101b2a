import logging
import math
import re

import pytest
import torch

from regard.core.errors import ConfigError
from regard.search.settings import SearchConfig, override_search


def test_limit_grows_with_the_source():
    mask = torch.tensor([[True, True, True], [True, False, False]])
    assert SearchConfig(max_ratio=1.5, max_extra=2).max_lengths(mask).tolist() == [6, 3]


@pytest.mark.parametrize(
    ("name", "value", "least"),
    [
        ("no_repeat_ngram", -1, "0"),
        ("top_k", -1, "0"),
        ("seed", -1, "0"),
    ],
)
def test_settings_have_limits(name, value, least):
    with pytest.raises(
        ConfigError, match=rf"^`{name}` must be at least {least}, but is {re.escape(str(value))}\.$"
    ):
        SearchConfig(**{name: value})


@pytest.mark.parametrize(
    ("name", "value", "bounds"),
    [
        ("beams", 0, "1 and 1000"),
        ("beams", 10**9, "1 and 1000"),
        ("length_penalty", 1e300, r"0\.0 and 10\.0"),
        ("max_ratio", -1.0, r"0\.0 and 100\.0"),
        ("max_extra", 0, "1 and 10000"),
        ("min_length", 10**9, "0 and 10000"),
        ("consensus", 10**9, "0 and 1000"),
        ("temperature", -0.1, r"0\.0 and 100\.0"),
        ("temperature", math.nan, r"0\.0 and 100\.0"),
        ("temperature", math.inf, r"0\.0 and 100\.0"),
        ("top_p", -0.1, r"0\.0 and 1\.0"),
        ("top_p", 1.1, r"0\.0 and 1\.0"),
        ("top_p", math.nan, r"0\.0 and 1\.0"),
        ("min_p", 2.0, r"0\.0 and 1\.0"),
        ("min_p", math.nan, r"0\.0 and 1\.0"),
        ("repetition_penalty", 0.5, r"1\.0 and 100\.0"),
        ("repetition_penalty", math.nan, r"1\.0 and 100\.0"),
    ],
)
def test_settings_have_two_limits(name, value, bounds):
    with pytest.raises(
        ConfigError, match=rf"^`{name}` must be between {bounds}, but is {re.escape(str(value))}\.$"
    ):
        SearchConfig(**{name: value})


def test_overrides_change_settings():
    changed = override_search(SearchConfig(beams=3), ["search.temperature=1", "search.top_k=40"])
    assert changed == SearchConfig(beams=3, temperature=1.0, top_k=40)


def test_no_overrides_change_nothing():
    assert override_search(SearchConfig(beams=3), []) == SearchConfig(beams=3)


@pytest.mark.parametrize("word", ["train.seed=3", "seed=3", "search=3"])
def test_overrides_of_other_settings_are_an_error(word):
    with pytest.raises(
        ConfigError,
        match=rf"^`{word[:-2]}` cannot be changed once a model is trained\..* "
        r"Settings of search can: 'search\.beams', .*'search\.seed'\.$",
    ):
        override_search(SearchConfig(), [word])


def test_unknown_override_is_an_error_with_a_suggestion():
    with pytest.raises(ConfigError, match=r"^`search\.temprature` is not a setting\. Did you mean"):
        override_search(SearchConfig(), ["search.temprature=3"])


def test_override_outside_the_limits_is_an_error_with_the_full_name():
    with pytest.raises(ConfigError, match=r"^`search\.top_p` must be between 0\.0 and 1\.0"):
        override_search(SearchConfig(), ["search.top_p=1.5"])


def warnings_of(config, caplog, **asked):
    with caplog.at_level(logging.WARNING, logger="regard"):
        config.warn_about_unused(**asked)
    return [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(
    ("name", "value"), [("top_k", 40), ("top_p", 0.9), ("min_p", 0.1), ("seed", 1)]
)
def test_sampling_setting_without_temperature_gives_a_warning(caplog, name, value):
    assert warnings_of(SearchConfig(**{name: value}), caplog) == [
        f"`search.{name}` is {value}, but has no effect: `search.temperature` is 0.0."
    ]


def test_beam_option_with_temperature_gives_a_warning(caplog):
    config = SearchConfig(temperature=0.5, beams=4)
    assert warnings_of(config, caplog, has_beam_option=True) == [
        "`search.beams` is 4, but has no effect: `search.temperature` is 0.5."
    ]


@pytest.mark.parametrize(
    "config", [SearchConfig(beams=3), SearchConfig(temperature=1.0, top_k=4, top_p=0.5, seed=3)]
)
def test_settings_with_an_effect_give_no_warning(caplog, config):
    assert warnings_of(config, caplog) == []
