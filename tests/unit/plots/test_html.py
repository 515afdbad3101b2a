from html.parser import HTMLParser

import pytest

from regard.plots.heatmap import svg
from regard.plots.html import Section, cards, facts, figure, join, paragraph, report, table
from regard.plots.inputs import Markup

HOSTILE = "<script>alert(1)</script>\"'&"


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.opened = []
        self.text = ""

    def handle_starttag(self, tag, attributes):
        self.opened.append(tag)

    def handle_data(self, data):
        self.text += data


def parse(page):
    tags = Tags()
    tags.feed(page)
    return tags


@pytest.mark.parametrize(
    "element",
    [
        cards({HOSTILE: HOSTILE}),
        facts({HOSTILE: HOSTILE}),
        table([HOSTILE], [[HOSTILE]]),
        paragraph(HOSTILE),
        figure(svg([[1.0]], [HOSTILE], [HOSTILE], title=HOSTILE), HOSTILE),
    ],
    ids=["cards", "facts", "table", "paragraph", "figure"],
)
def test_every_element_escapes_scripts(element):
    assert "script" not in parse(element).opened


def test_headings_escape_scripts():
    assert "script" not in parse(report(HOSTILE, [Section(HOSTILE, Markup(""))])).opened


def test_escaped_text_is_shown_unchanged():
    assert HOSTILE in parse(paragraph(HOSTILE)).text


def test_page_has_no_external_links():
    markup = figure(svg([[1.0]], ["a"], ["x"]), "caption")
    page = report("t", [Section("s", join(markup, cards({"BLEU": 1})))])
    page = page.replace("http://www.w3.org/2000/svg", "")
    assert not any(sign in page for sign in ("http", "src=", "@import", "url(", "<link"))


def test_sections_keep_their_order():
    page = report("t", [Section("first", paragraph("a")), Section("second", paragraph("b"))])
    assert page.index("first") < page.index("second")


def test_a_section_without_title_has_no_heading():
    assert "h2" not in parse(report("t", [Section("", paragraph("a"))])).opened


def test_page_sets_the_viewport():
    assert '<meta name="viewport" content="width=device-width' in report("t", [])


def test_page_has_a_dark_colour_scheme():
    assert "prefers-color-scheme:dark" in report("t", [])


def test_numbers_are_right_aligned_and_formatted():
    html = table(["name", "count", "BLEU"], [["a", 12345, 37.918]])
    assert '<td class="number">12,345</td><td class="number">37.92</td>' in html


def test_headings_of_numbers_are_right_aligned():
    assert '<th class="number">count</th>' in table(["name", "count"], [["a", 1]])


def test_text_has_automatic_direction():
    assert '<td dir="auto">البيت</td>' in table(["source"], [["البيت"]])


def test_a_table_may_be_empty():
    assert "td" not in parse(table(["name"], [])).opened


def test_a_figure_without_caption_has_none():
    assert "figcaption" not in parse(figure(Markup("<svg></svg>"))).opened
