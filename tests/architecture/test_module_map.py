import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAX_MODULES = 22


@pytest.fixture
def module_map(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent)
    import module_map

    yield module_map
    sys.modules.pop("module_map")


def test_the_module_map_equals_the_packages_on_disk(module_map):
    advice = "Run `python tests/architecture/module_map.py` to write it again."
    assert module_map.written_map() == module_map.module_map(), advice


def test_every_package_is_in_the_map(module_map):
    packages = {path.parent.name for path in (ROOT / "regard").glob("*/__init__.py")}
    assert packages == set(module_map.PACKAGES)


def test_no_package_has_too_many_modules_on_one_level():
    folders = {path.parent for path in (ROOT / "regard").rglob("*.py")}
    sizes = {folder: len([*folder.glob("*.py")]) for folder in folders}
    assert {folder: size for folder, size in sizes.items() if size > MAX_MODULES} == {}
