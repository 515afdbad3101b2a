"""Shell completion, in a process of its own as shells call it."""

import os
import shutil
import subprocess
import sys

import pytest

from regard.cli.completion import complete_data, complete_experiment, complete_recipe, complete_run
from regard.data.datasets.catalog import DATASETS
from regard.runs.recipes import recipe_names
from regard.studies.reproduce.catalog import experiments


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A working folder with a run, a file of pairs and a `regard` command."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    (tmp_path / "runs" / "mine" / "config.json").touch()
    (tmp_path / "pairs.tsv").touch()
    script = tmp_path / "bin" / "regard"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m regard "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def complete(*words, shell="zsh"):
    """Return the completions of the last word."""
    variables = {"_TYPER_COMPLETE_ARGS": " ".join(words), "_REGARD_COMPLETE": f"complete_{shell}"}
    done = subprocess.run(
        ["regard"], env={**os.environ, **variables}, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout


def complete_in_bash(*words):
    """Return the replies of bash with the installed script."""
    script = f"""
        source <(regard --show-completion)
        COMP_WORDS=({" ".join(f"'{word}'" for word in words)})
        COMP_CWORD={len(words) - 1}
        _regard_completion regard
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("regard", "tra"), ["train"]),
        (("regard", "data", "lis"), ["list"]),
        (("regard", "train", "phra"), ["phrasebook"]),
        (("regard", "train", "x.tsv", "--recipe", "vaswani2017-t"), ["vaswani2017-tiny"]),
        (("regard", "predict", "runs/mine", "--thr"), ["--threads"]),
        (("regard", "predict", "runs/mine", "search.be"), ["search.beams=", "search.beams=5"]),
        (("regard", "train", "x.tsv", "model.encoder.kind", "=", "tran"), ["transformer"]),
    ],
)
def test_bash_completes(words, expected):
    assert complete_in_bash(*words) == expected


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_complete(shell, monkeypatch):
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    assert "gehring2017-laptop" in complete("regard", "explain", "gehr", shell=shell)
    found = complete("regard", "explain", "gehring2017", "model.decoder.kind=co", shell=shell)
    assert "model.decoder.kind=convolution" in found


def test_completion_imports_no_large_package():
    code = "import sys; from regard.cli.main import main\ntry: main()\nfinally: print(*sys.modules)"
    variables = {
        "_REGARD_COMPLETE": "complete_bash",
        "COMP_WORDS": "regard\ntrain\nphrasebook\nmodel.encoder.d",
        "COMP_CWORD": "3",
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    completions, modules = done.stdout.rsplit("\n", 2)[:2]
    assert completions.split() == ["model.encoder.dim=", "model.encoder.dropout="]
    assert {"torch", "numpy", "rich"} & set(modules.split()) == set()


def test_completion_is_installed_for_the_shell(folder):
    variables = {"HOME": str(folder), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    for shell, file in (("bash", ".bashrc"), ("zsh", ".zshrc"), ("fish", ".config/fish")):
        subprocess.run(
            ["regard", "--install-completion", shell],
            env={**os.environ, **variables},
            capture_output=True,
            check=True,
        )
        assert (folder / file).exists()


def test_names_are_complete():
    assert set(recipe_names()) <= set(complete_recipe(""))
    assert set(DATASETS) <= set(complete_data(""))
    assert "pairs.tsv" in complete_data("pa")
    assert set(complete_experiment()) == set(experiments())


def test_runs_are_folders_with_settings():
    assert list(complete_run("")) == ["runs/mine"]
    assert list(complete_run("runs/m")) == ["runs/mine"]
    assert list(complete_run("runs/a,runs/")) == ["runs/a,runs/mine"]
