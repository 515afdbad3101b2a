import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from regard.studies.compare.rendering import DISAGREEMENTS, comparison_page, print_comparison
from regard.studies.compare.sections import comparison_sections

NAMESPACES = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
"""XML namespaces, which are not fetched."""


@pytest.fixture
def page(german):
    return comparison_page(german)


def test_page_is_self_contained(page):
    assert set(re.findall(r"https?://[^\s\"'<>)]+", page)) <= NAMESPACES
    assert re.findall(r"<(?:script|link|iframe|img)\b", page) == []


def test_sentences_are_escaped(page):
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "Is it &lt;b&gt;true&lt;/b&gt;?" in page


def test_page_has_every_section(page, german):
    headings = re.findall(r"<h2>(.*?)</h2>", page)
    titles = [section.title for section in comparison_sections(german)]
    assert headings == [*titles, DISAGREEMENTS, "Provenance"]


def test_equal_outputs_have_no_section_of_disagreements(german):
    assert DISAGREEMENTS not in comparison_page(replace(german, disagreements=[]))


def test_empty_charts_are_omitted(page):
    assert page.count('<svg class="regard-figure"') == 1


def test_every_signature_is_on_the_page(page, german):
    for result in german.runs[0].results.values():
        assert result.signature in page
    for difference in german.runs[1].differences.values():
        assert difference.signature in page


def test_default_title_is_the_names_of_the_runs(german):
    assert "<title>right · wrong</title>" in comparison_page(german)
    assert "<title>A &lt;title&gt;</title>" in comparison_page(german, title="A <title>")


def printed(comparison, width=100):
    console = Console(file=io.StringIO(), width=width)
    print_comparison(comparison, console)
    return console.file.getvalue()


def test_every_section_is_printed(german):
    text = printed(german)
    for section in comparison_sections(german):
        assert f"{section.title}\n" in text


def test_outputs_are_printed_below_source_and_reference(german):
    lines = printed(german).splitlines()
    (start,) = [row for row, line in enumerate(lines) if "Is it <b>true</b>?" in line]
    assert [line.split()[0] for line in lines[start : start + 4]] == [
        "source",
        "reference",
        "right",
        "wrong",
    ]


def test_signatures_are_not_wrapped_in_a_narrow_terminal(german):
    lines = printed(german, width=40).splitlines()
    for result in german.runs[0].results.values():
        assert f"{result.name}: {result.signature}" in lines


@pytest.mark.parametrize("text", ["[bold]loud[/bold]", "[/]"])
def test_brackets_are_printed_as_text(german, text):
    (first, *rest) = german.disagreements
    changed = replace(german, disagreements=[replace(first, source=text), *rest])
    assert text in printed(changed)


def test_control_characters_do_not_reach_the_terminal(german):
    (first, *rest) = german.disagreements
    changed = replace(german, disagreements=[replace(first, source="\x1b[2J"), *rest])
    assert "\x1b" not in printed(changed)
