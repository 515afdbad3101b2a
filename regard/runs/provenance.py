"""Provenance of a result: command, versions, commit and hardware."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

import regard
from regard.core.device import describe_hardware


def describe_provenance(device: torch.device) -> dict[str, Any]:
    """Return the provenance of a result: command, versions, commit, hardware and threads."""
    return {
        "command": command_line(),
        "regard": regard.__version__,
        "torch": torch.__version__,
        "commit": _commit(),
        "hardware": describe_hardware(device),
        "threads": torch.get_num_threads(),
    }


def command_line() -> str:
    """Return the `regard` command of this process, or the script that uses the package."""
    script, *arguments = sys.argv
    is_script = script.endswith(".py") and Path(script).name != "__main__.py"
    return " ".join([f"python {script}" if is_script else "regard", *arguments])


def _commit() -> str:
    """Return the commit of the source tree of the package, or an empty string.

    For copies without history, in a container or on a cluster, REGARD_COMMIT gives the commit.
    """
    if commit := os.environ.get("REGARD_COMMIT"):
        return commit
    folder = Path(regard.__file__).parent.parent
    if not (folder / ".git").exists():
        return ""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12"],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
