"""Execute the notebook of the lectures in a fresh kernel.

python tests/notebooks/execute.py                    # executes every cell; stops at an error
python tests/notebooks/execute.py --write            # also stores the outputs in the notebook
python tests/notebooks/execute.py --out FILE         # stores the executed notebook in a file
"""

import argparse
import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs" / "lectures.ipynb"
SECONDS = 900
"""Time limit of a cell."""

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def execute(path: Path) -> Any:
    """Return a notebook with the outputs of its cells; raise the error of a cell."""
    # Imported here, since tests read `digest` without them.
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        prepare_environment(Path(folder))
        resources = {"metadata": {"path": folder}}
        NotebookClient(
            notebook,
            timeout=SECONDS,
            kernel_name="python3",
            resources=resources,
            record_timing=False,
            coalesce_streams=True,
        ).execute()
    return clean(notebook)


def prepare_environment(folder: Path) -> None:
    """Let the kernel import this checkout, and keep its files and settings in a folder."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        os.environ[name] = str(folder / name.lower())


def clean(notebook: Any) -> Any:
    """Remove what differs between machines, and store the digest of the executed code."""
    notebook.metadata = {
        "kernelspec": KERNEL,
        "language_info": {"name": "python"},
        "regard": {"executed": digest(notebook)},
    }
    for cell in notebook.cells:
        cell.metadata = {}
    return notebook


def digest(notebook: Any) -> str:
    """Return a checksum of the code cells, by which outdated outputs are found."""
    code = [_text(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return hashlib.sha256("\0".join(code).encode()).hexdigest()


def _text(source: str | list[str]) -> str:
    # In a file, the source is a list of lines.
    return source if isinstance(source, str) else "".join(source)


if __name__ == "__main__":
    import nbformat

    parser = argparse.ArgumentParser(description="Execute the notebook of the lectures.")
    parser.add_argument("--write", action="store_true", help="store the outputs in the notebook")
    parser.add_argument("--out", type=Path, help="file for the executed notebook")
    arguments = parser.parse_args()
    executed = execute(NOTEBOOK)
    for path in filter(None, (arguments.out, NOTEBOOK if arguments.write else None)):
        nbformat.write(executed, path)
