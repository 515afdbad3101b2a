import re
from dataclasses import replace

import pytest

from regard.studies.compare.page import comparison_page
from regard.studies.compare.sections import find_parts

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
    titles = [part.title for part in find_parts(german)]
    assert headings == [*titles, "Where the outputs differ most", "How it was made"]


def test_equal_outputs_have_no_differences_to_show(german):
    assert "differ most" not in comparison_page(replace(german, disagreements=[]))


def test_accuracy_by_position_is_drawn_and_nothing_is_not(page):
    assert page.count('<svg class="regard-figure"') == 1


def test_every_signature_is_on_the_page(page, german):
    for result in german.standings[0].results.values():
        assert result.signature in page
    for difference in german.standings[1].differences.values():
        assert difference.signature in page


def test_page_is_called_after_the_runs_unless_told_otherwise(german):
    assert "<title>right · wrong</title>" in comparison_page(german)
    assert "<title>A &lt;title&gt;</title>" in comparison_page(german, title="A <title>")
