import sys
from pathlib import Path

import pytest

from regard.cli.completion import SETTINGS, list_settings
from regard.core.config import to_dict
from regard.runs.recipes import load_recipe, recipe_names


@pytest.fixture
def setting_names(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent)
    import setting_names

    yield setting_names
    sys.modules.pop("setting_names")


def dotted(values, prefix=""):
    """Yield the dotted names of nested settings."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from dotted(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def test_names_for_completion_are_those_of_the_settings_classes(setting_names):
    advice = "Run `python tests/architecture/setting_names.py` to write them again."
    assert SETTINGS.read_text(encoding="utf-8") == setting_names.setting_names(), advice


def test_names_of_each_recipe_are_those_of_its_settings():
    for name in recipe_names():
        listed = {setting for setting, _ in list_settings(name, [])}
        assert set(dotted(to_dict(load_recipe(name)))) - listed == set(), name


def test_kind_of_an_override_changes_the_names():
    names = dict(list_settings("vaswani2017-base", ["model.encoder.kind=rnn"]))
    assert "model.encoder.cell" in names
    assert "model.encoder.num_heads" not in names
    assert {"rnn", "transformer"} <= set(names["model.encoder.kind"])
