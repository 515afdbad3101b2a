import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from regard.runs.recipes import recipe_names

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    done = subprocess.run(
        [*command, str(ROOT)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("*.whl")
    return path


def test_wheel_contains_data_files(wheel):
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
    recipes = {f"regard/recipes/{name}.toml" for name in recipe_names()}
    assert {
        "regard/py.typed",
        "regard/data/datasets/catalog.toml",
        "regard/data/datasets/synthetic/phrasebook/german.toml",
        "regard/data/datasets/synthetic/phrasebook/lexicon.toml",
        "regard/data/datasets/synthetic/scenes/german.toml",
        *recipes,
    } <= names


def test_wheel_contains_no_tests(wheel):
    with zipfile.ZipFile(wheel) as opened:
        folders = {name.split("/")[0] for name in opened.namelist()}
    assert {folder for folder in folders if not folder.endswith(".dist-info")} == {"regard"}


def test_wheel_installs_the_command(wheel):
    with zipfile.ZipFile(wheel) as opened:
        (name,) = [name for name in opened.namelist() if name.endswith("/entry_points.txt")]
        assert b"regard = regard.cli.main:main" in opened.read(name)


def test_unpacked_wheel_runs(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "regard", "explain", "bahdanau2015-laptop"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("# Bahdanau et al. 2015")
