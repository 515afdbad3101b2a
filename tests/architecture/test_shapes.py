"""Shapes in comments and docstrings use the letters of `regard.core.shapes`."""

import ast
import re
import tokenize
from pathlib import Path

import pytest

from regard.core.shapes import LETTERS

PACKAGE = Path(__file__).parents[2] / "regard"
FILES = sorted(PACKAGE.rglob("*.py"))

FACTOR = r"(?:\d+|\d*[A-Z])"
AXIS = rf"(?:\.\.\.|any width|{FACTOR}(?:·{FACTOR})*(?: [-+] \d+)?)"
# A shape has a comma: (B,) is one, and (A) is prose.
SHAPE = re.compile(rf"\(({AXIS}(?:,|(?:, {AXIS})+))\)")


def comments(path):
    with path.open("rb") as file:
        tokens = tokenize.tokenize(file.readline)
        yield from (token.string for token in tokens if token.type == tokenize.COMMENT)


def docstrings(path):
    """Return every string that is a statement: docstrings of modules, functions and fields."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield str(node.value.value)


def unknown_letters(shape):
    return set(re.findall(r"[A-Z]", shape)) - set(LETTERS)


def faults_in_comment(comment):
    """Return the faults of a comment that starts like a shape."""
    shape = SHAPE.match(comment.removeprefix("#").strip())
    if shape is None:
        return [f"{comment} is not a shape"]
    return [f"{letter} in {comment}" for letter in unknown_letters(shape[1])]


def faults_in_docstring(text):
    return [
        f"{letter} in ({shape})"
        for shape in SHAPE.findall(text)
        for letter in unknown_letters(shape)
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_shapes_use_known_letters(path):
    faults = [
        fault
        for comment in comments(path)
        if re.match(r"#\s*\(", comment)
        for fault in faults_in_comment(comment)
    ]
    faults += [fault for text in docstrings(path) for fault in faults_in_docstring(text)]
    assert faults == []


@pytest.mark.parametrize(
    "shape",
    ["(B,)", "(B, S)", "(..., Q, K, 1)", "(B·W, 2W)", "(B, T - 1, V)", "(..., K, any width)"],
)
def test_shape_in_known_letters_has_no_fault(shape):
    assert faults_in_comment(f"# {shape} and why") == []
    assert faults_in_docstring(f"Something, {shape}.") == []


@pytest.mark.parametrize("shape", ["(B, Z)", "(Z,)", "(B·Z, T)", "(2Z, T - 1)"])
def test_shape_with_an_unknown_letter_is_a_fault(shape):
    assert faults_in_comment(f"# {shape}") == [f"Z in # {shape}"]
    assert faults_in_docstring(f"Something, {shape}.") == [f"Z in {shape}"]


@pytest.mark.parametrize("comment", ["# (batch, seq)", "# (B x S)", "# (B,S)"])
def test_comment_in_another_notation_is_a_fault(comment):
    assert faults_in_comment(comment) == [f"{comment} is not a shape"]


def test_prose_in_brackets_is_no_shape():
    prose = "Luong (2015, section 3), a pair (h, c), a call (source, target), a case (A)."
    assert faults_in_docstring(prose) == []
