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
    "piece",
    [
        cards({HOSTILE: HOSTILE}),
        facts({HOSTILE: HOSTILE}),
        table([HOSTILE], [[HOSTILE]]),
        paragraph(HOSTILE),
        figure(svg([[1.0]], [HOSTILE], [HOSTILE], title=HOSTILE), HOSTILE),
    ],
    ids=["cards", "facts", "table", "paragraph", "figure"],
)
def test_no_piece_lets_a_script_live(piece):
    assert "script" not in parse(piece).opened


def test_no_heading_lets_a_script_live():
    assert "script" not in parse(report(HOSTILE, [Section(HOSTILE, Markup(""))])).opened


def test_hostile_text_is_shown_as_it_is():
    assert HOSTILE in parse(paragraph(HOSTILE)).text


def test_page_needs_nothing_from_elsewhere():
    drawing = figure(svg([[1.0]], ["a"], ["x"]), "caption")
    page = report("t", [Section("s", join(drawing, cards({"BLEU": 1})))])
    page = page.replace("http://www.w3.org/2000/svg", "")
    assert not any(sign in page for sign in ("http", "src=", "@import", "url(", "<link"))


def test_sections_keep_their_order():
    page = report("t", [Section("first", paragraph("a")), Section("second", paragraph("b"))])
    assert page.index("first") < page.index("second")


def test_a_section_without_title_has_no_heading():
    assert "h2" not in parse(report("t", [Section("", paragraph("a"))])).opened


def test_page_fits_a_phone():
    assert '<meta name="viewport" content="width=device-width' in report("t", [])


def test_page_has_a_dark_scheme():
    assert "prefers-color-scheme:dark" in report("t", [])


def test_numbers_stand_on_the_right_and_read_easily():
    html = table(["name", "count", "BLEU"], [["a", 12345, 37.918]])
    assert '<td class="number">12,345</td><td class="number">37.92</td>' in html


def test_the_head_of_numbers_stands_on_the_right_too():
    assert '<th class="number">count</th>' in table(["name", "count"], [["a", 1]])


def test_text_runs_the_way_its_script_does():
    assert '<td dir="auto">البيت</td>' in table(["source"], [["البيت"]])


def test_a_table_may_be_empty():
    assert "td" not in parse(table(["name"], [])).opened


def test_a_figure_without_caption_has_none():
    assert "figcaption" not in parse(figure(Markup("<svg></svg>"))).opened
