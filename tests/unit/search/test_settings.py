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
        ("groups", 0, "1 and 1000"),
        ("diversity", -1.0, r"0\.0 and 100\.0"),
        ("coverage_penalty", -1.0, r"0\.0 and 100\.0"),
        ("typical_p", 1.1, r"0\.0 and 1\.0"),
        ("repetition_penalty", 0.5, r"1\.0 and 100\.0"),
        ("repetition_penalty", math.nan, r"1\.0 and 100\.0"),
    ],
)
def test_settings_have_two_limits(name, value, bounds):
    with pytest.raises(
        ConfigError, match=rf"^`{name}` must be between {bounds}, but is {re.escape(str(value))}\.$"
    ):
        SearchConfig(**{name: value})


@pytest.mark.parametrize(("beams", "groups"), [(5, 2), (1, 2), (4, 3)])
def test_groups_must_divide_beams(beams, groups):
    with pytest.raises(
        ConfigError, match=rf"^`groups` must divide `beams` \({beams}\), but is {groups}\.$"
    ):
        SearchConfig(beams=beams, groups=groups)


def test_coverage_and_consensus_exclude_each_other():
    with pytest.raises(ConfigError, match="^`coverage_penalty` must be 0 where `consensus`"):
        SearchConfig(coverage_penalty=0.2, consensus=4)


def test_more_beams_are_a_multiple_of_the_groups():
    config = SearchConfig(beams=6, groups=3)
    assert [config.with_beams(num).beams for num in (1, 6, 7, 10)] == [6, 6, 9, 12]


def test_greedy_search_keeps_the_constraints():
    config = SearchConfig(
        beams=6, groups=3, stopping="bound", consensus=4, no_repeat_ngram=2, max_extra=7
    )
    assert config.greedy() == SearchConfig(beams=1, no_repeat_ngram=2, max_extra=7)
    covering = SearchConfig(beams=6, coverage_penalty=0.2, diversity=0.9)
    assert covering.greedy() == SearchConfig(beams=1, diversity=0.9)


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


@pytest.mark.parametrize(
    ("settings", "name", "reason"),
    [
        ({"typical_p": 0.9}, "typical_p", "`search.temperature` is 0.0"),
        ({"diversity": 0.9}, "diversity", "`search.groups` is 1"),
        ({"consensus_metric": "bleu"}, "consensus_metric", "`search.consensus` is 0"),
        ({"beams": 1, "stopping": "bound"}, "stopping", "`search.beams` is 1"),
        ({"beams": 1, "coverage_penalty": 0.2}, "coverage_penalty", "`search.beams` is 1"),
        ({"temperature": 1.0, "stopping": "none"}, "stopping", "`search.temperature` is 1.0"),
        (
            {"temperature": 1.0, "length_penalty_kind": "gnmt"},
            "length_penalty_kind",
            "`search.temperature` is 1.0",
        ),
        ({"temperature": 1.0, "beams": 4, "groups": 2}, "groups", "`search.temperature` is 1.0"),
    ],
)
def test_setting_without_an_effect_gives_a_warning(caplog, settings, name, reason):
    assert warnings_of(SearchConfig(**settings), caplog) == [
        f"`search.{name}` is {settings[name]}, but has no effect: {reason}."
    ]


def test_beam_option_with_temperature_gives_a_warning(caplog):
    config = SearchConfig(temperature=0.5, beams=4)
    assert warnings_of(config, caplog, has_beam_option=True) == [
        "`search.beams` is 4, but has no effect: `search.temperature` is 0.5."
    ]


@pytest.mark.parametrize(
    "config",
    [
        SearchConfig(beams=3),
        SearchConfig(temperature=1.0, top_k=4, top_p=0.5, typical_p=0.9, seed=3),
        SearchConfig(beams=4, groups=2, diversity=1.0, stopping="bound", coverage_penalty=0.1),
        SearchConfig(temperature=1.0, consensus=9, consensus_metric="chrf"),
    ],
)
def test_settings_with_an_effect_give_no_warning(caplog, config):
    assert warnings_of(config, caplog) == []
