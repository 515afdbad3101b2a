"""The page on attention: its code blocks run in order and assert its numbers."""

import re
from pathlib import Path

import pytest

from regard.attention.scores import SCORES

PAGE = Path(__file__).parents[2] / "docs" / "attention.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_every_block_runs_after_those_before_it(capsys):
    names = {"__name__": "page"}
    for block in BLOCKS:
        exec(compile(block, PAGE.name, "exec"), names)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.splitlines()[1])
def test_every_block_asserts_something(block):
    assert re.search(r"^ *assert ", block, re.MULTILINE)


def test_table_of_scores_is_the_table_of_the_package():
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\[(\w+)\]\(", TEXT, re.MULTILINE))
    assert rows == {name: score.__name__ for name, score in SCORES.items()}


def test_page_is_short_enough_to_be_read():
    assert len(TEXT.splitlines()) < 290


def test_table_of_the_alignment_is_the_one_asserted():
    rows = re.findall(r"^\| (?:je|t'|aime) \|(.*)\|$", TEXT, re.MULTILINE)
    table = (
        "[" + ", ".join(f"[{', '.join(row.split(' | '))}]" for row in map(str.strip, rows)) + "]"
    )
    assert len(rows) == 3
    assert f"torch.tensor({table})" in TEXT
