"""The notebook of the lectures runs, and its stored outputs are those of its code."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from regard.studies.reproduce.catalog import CHAPTERS
from tests.notebooks.execute import NOTEBOOK, digest

SCRIPT = Path(__file__).with_name("execute.py")
IMAGES = {"image/png", "image/svg+xml"}
MAX_BYTES = 1_500_000
SECONDS = 900


@pytest.fixture(scope="module")
def cells():
    return read_cells(NOTEBOOK)


def read_cells(path):
    """Return the cells of a notebook, each source as one text."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [{**cell, "source": "".join(cell["source"])} for cell in cells]


def code_of(cells):
    return [cell for cell in cells if cell["cell_type"] == "code"]


def kinds(cell):
    """Return the kinds of the outputs of a cell: a stream's name, or the formats of a value."""
    return [
        output["name"] if output["output_type"] == "stream" else sorted(output["data"])
        for output in cell["outputs"]
    ]


def chapters(cells):
    """Return the cells below each heading of the second level."""
    found = {}
    heading = None
    for cell in cells:
        match = re.match(r"## (?:\d+ )?(.+)", cell["source"])
        if cell["cell_type"] == "markdown" and match:
            heading = match[1].strip()
            found[heading] = []
        elif heading:
            found[heading].append(cell)
    return found


def test_every_chapter_has_a_section_with_a_formula_code_and_an_image(cells):
    sections = chapters(cells)
    assert list(sections) == list(CHAPTERS.values())
    for title, section in sections.items():
        outputs = [output for cell in code_of(section) for output in cell["outputs"]]
        assert any(IMAGES & {*output.get("data", {})} for output in outputs), title
        assert any("\n    " in cell["source"] for cell in section), f"{title}: no formula"


def test_stored_outputs_are_those_of_the_code(cells):
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    message = "Outputs are outdated. Run: python tests/notebooks/execute.py --write"
    assert notebook["metadata"]["regard"]["executed"] == digest(notebook), message
    counts = [cell["execution_count"] for cell in code_of(cells)]
    assert counts == [*range(1, len(counts) + 1)]


def test_the_file_is_small_and_the_same_on_every_machine(cells):
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert len(text.encode()) < MAX_BYTES
    assert 25 <= len(cells) <= 42
    assert not re.search(r"/(home|root|tmp|Users|work)/", text)
    assert not any(cell["metadata"] for cell in cells)
    assert not any("stderr" in kinds(cell) for cell in code_of(cells))


@pytest.mark.notebook
def test_every_cell_runs_in_a_fresh_kernel_and_has_outputs_of_the_stored_kinds(cells, tmp_path):
    out = tmp_path / "executed.ipynb"
    command = [sys.executable, str(SCRIPT), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr[-4000:]
    executed, stored = code_of(read_cells(out)), code_of(cells)
    assert [cell["source"] for cell in executed] == [cell["source"] for cell in stored]
    assert [*map(kinds, executed)] == [*map(kinds, stored)]
