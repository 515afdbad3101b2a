import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from regard.studies.compare.rendering import comparison_page, print_comparison
from regard.studies.compare.sections import comparison_sections

NAMESPACES = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
"""Names that look like addresses, but that nobody visits."""


@pytest.fixture
def page(german):
    return comparison_page(german)


def test_page_needs_nothing_but_itself(page):
    assert set(re.findall(r"https?://[^\s\"'<>)]+", page)) <= NAMESPACES
    assert re.findall(r"<(?:script|link|iframe|img)\b", page) == []


def test_sentences_are_escaped(page):
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "Is it &lt;b&gt;true&lt;/b&gt;?" in page


def test_page_has_every_part_and_where_the_outputs_differ(page, german):
    headings = re.findall(r"<h2>(.*?)</h2>", page)
    titles = [part.title for part in comparison_sections(german)]
    assert headings == [*titles, "Where the outputs differ most", "How it was made"]


def test_equal_outputs_have_no_differences_to_show(german):
    assert "differ most" not in comparison_page(replace(german, disagreements=[]))


def test_accuracy_by_position_is_drawn_and_nothing_is_not(page):
    assert page.count('<svg class="regard-figure"') == 1


def test_every_signature_is_on_the_page(page, german):
    for result in german.runs[0].results.values():
        assert result.signature in page
    for difference in german.runs[1].differences.values():
        assert difference.signature in page


def test_page_is_called_after_the_runs_unless_told_otherwise(german):
    assert "<title>right · wrong</title>" in comparison_page(german)
    assert "<title>A &lt;title&gt;</title>" in comparison_page(german, title="A <title>")


def printed(comparison, width=100):
    console = Console(file=io.StringIO(), width=width)
    print_comparison(comparison, console)
    return console.file.getvalue()


def test_every_part_is_printed(german):
    text = printed(german)
    for part in comparison_sections(german):
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
    for result in german.runs[0].results.values():
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
