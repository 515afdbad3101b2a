import io
from dataclasses import replace

import pytest
from rich.console import Console

from regard.studies.compare.sections import find_parts
from regard.studies.compare.terminal import show


def printed(comparison, width=100):
    console = Console(file=io.StringIO(), width=width)
    show(comparison, console)
    return console.file.getvalue()


def test_every_part_is_printed(german):
    text = printed(german)
    for part in find_parts(german):
        assert f"{part.title}\n" in text


def test_answers_stand_side_by_side(german):
    lines = printed(german).splitlines()
    (place,) = [row for row, line in enumerate(lines) if "Is it <b>true</b>?" in line]
    assert [line.split()[0] for line in lines[place : place + 4]] == [
        "source",
        "reference",
        "right",
        "wrong",
    ]


def test_signatures_are_on_one_line_each_however_narrow_the_terminal(german):
    lines = printed(german, width=40).splitlines()
    for result in german.standings[0].results.values():
        assert f"{result.name}: {result.signature}" in lines


@pytest.mark.parametrize("text", ["[bold]loud[/bold]", "[/]"])
def test_brackets_are_text(german, text):
    (first, *rest) = german.disagreements
    changed = replace(german, disagreements=[replace(first, source=text), *rest])
    assert text in printed(changed)


def test_control_characters_do_not_reach_the_terminal(german):
    (first, *rest) = german.disagreements
    changed = replace(german, disagreements=[replace(first, source="\x1b[2J"), *rest])
    assert "\x1b" not in printed(changed)
