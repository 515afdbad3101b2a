"""Every module of `attention` and `plots` can be run as a short demonstration."""

import runpy
from pathlib import Path

import pytest

import regard

PACKAGE = Path(regard.__file__).parent
MODULES = [
    f"regard.{package}.{path.stem}"
    for package in ("attention", "plots")
    for path in sorted((PACKAGE / package).glob("*.py"))
    if path.stem != "__init__"
]


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
def test_a_module_run_by_itself_prints_something(module, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    runpy.run_module(module, run_name="__main__")
    assert capsys.readouterr().out.strip()
