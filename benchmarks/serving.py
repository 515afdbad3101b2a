"""Benchmark of the server under load."""

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from results import rounded, write_results

from regard.core.files import read_json
from regard.runs import folder as runs
from regard.runs.saved.config import read_config

SERVED = "vaswani2017-small"
"""Recipe of the run that is served if none is given."""


def serving_load(out: Path, options: Mapping[str, str]) -> None:
    """Run `regard bench serve` and write its report.

    `run` is a run folder, one of `vaswani2017-small` if not given, trained first if there is none;
    `name` names the machine in the file; other options are those of the command.
    """
    given = {"seconds": "60", **options}
    name = f"serving{'-' * ('name' in given)}{given.pop('name', '')}"
    folder = Path(given.pop("run", "") or Path("runs", "serving", SERVED))
    if not (folder / runs.METRICS).exists():
        words = ["multi30k", "--recipe", SERVED, "--out", str(folder)]
        subprocess.run([sys.executable, "-m", "regard", "train", *words], check=True)
    words = [word for key, value in given.items() for word in (f"--{key}", value)]
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "report.json"
        command = [sys.executable, "-m", "regard", "bench", "serve", str(folder), *words]
        subprocess.run([*command, "--json", "--out", str(path)], check=True)
        report = read_json(path)
    settings = " ".join(
        f"run={folder.name}" if key == "run" else f"{key}={value}" for key, value in options.items()
    )
    report["recipe"] = read_config(folder)["about"].get("recipe")
    report["command"] = f"python benchmarks/run.py serving{settings and f' --set {settings}'}"
    write_results(out / f"{name}.json", rounded({"experiment": name, **report}))
