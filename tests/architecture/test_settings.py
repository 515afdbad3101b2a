"""Every settings class of the package: documented, checked, and equal after loading."""

import dataclasses
import importlib
import pkgutil
import tomllib

import pytest

import regard
from regard.core.config import Config, explain, field_docs, from_dict, limits, to_dict
from regard.core.errors import ConfigError


def settings_classes():
    found = {}
    for module in pkgutil.walk_packages(regard.__path__, "regard."):
        # Kernels need Triton, which CPU builds of torch do not bring.
        skipped = ("regard.cli", "regard.attention.kernels", "regard.models.kernels")
        if module.name.startswith(skipped) or module.name.endswith("__main__"):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            is_settings = isinstance(value, type) and dataclasses.is_dataclass(value)
            if is_settings and name.endswith("Config"):
                found[name] = value
    return found


CLASSES = settings_classes()


@pytest.fixture(params=CLASSES.values(), ids=CLASSES)
def settings_class(request):
    return request.param


def test_every_setting_has_a_docstring(settings_class):
    names = {field.name for field in dataclasses.fields(settings_class)}
    notes = field_docs(settings_class)
    assert names - set(notes) == set()
    assert all(note.endswith((".", "…")) for note in notes.values())


def test_settings_are_frozen(settings_class):
    assert settings_class.__dataclass_params__.frozen


def test_values_below_a_limit_are_refused(settings_class):
    assert issubclass(settings_class, Config)
    for name, limit in limits(settings_class).items():
        with pytest.raises(ConfigError, match=f"^`{name}` must be .*{limit.low}"):
            settings_class(**{name: limit.low - 1})


def test_defaults_load_back_from_a_dict_and_from_toml(settings_class):
    settings = settings_class()
    assert from_dict(settings_class, to_dict(settings)) == settings
    assert from_dict(settings_class, tomllib.loads(explain(settings))) == settings
