"""`regard watch` refuses what it cannot follow."""

import sys


def test_a_run_that_does_not_exist(refused, tmp_path):
    message = refused("watch", tmp_path, tmp_path / "missing")
    assert f"{tmp_path / 'missing'} does not exist. Give run folders" in message


def test_other_machines_need_a_token(refused, tmp_path):
    message = refused("watch", tmp_path, "--host", "0.0.0.0")
    assert "--token-file" in message and "--insecure" in message


def test_missing_packages_are_named(refused, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    message = refused("watch", tmp_path)
    assert "`regard watch` needs the package uvicorn" in message
    assert "pip install 'regard[serve]'" in message
