"""Links to lines of code lead to the code that they name."""

import pytest

from tests.architecture.code_links import code_links, pages, update

SOURCE = "import math\n\n\ndef f(x):\n    return math.exp(x)\n"


@pytest.fixture
def page(tmp_path):
    """A page beside a file of code."""
    (tmp_path / "code.py").write_text(SOURCE, encoding="utf-8")
    return tmp_path / "page.md"


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_line_contains_the_text_of_its_link(page):
    assert [link for link in code_links(page) if not link.is_right] == []


@pytest.mark.parametrize(
    ("line", "is_right"), [("4", True), ("5", False), ("9", False)], ids=["right", "wrong", "after"]
)
def test_wrong_line_is_found(page, line, is_right):
    page.write_text(f"See [`def f`](code.py#L{line}).", encoding="utf-8")
    (link,) = code_links(page)
    assert link.is_right is is_right


def test_text_of_a_link_may_contain_brackets(page):
    page.write_text("See [`weights[:, 0]`](code.py#L4).", encoding="utf-8")
    (link,) = code_links(page)
    assert link.code == "weights[:, 0]" and not link.is_right


def test_missing_file_is_found(page):
    page.write_text("See [`def f`](other.py#L1).", encoding="utf-8")
    (link,) = code_links(page)
    assert not link.is_right


def test_update_moves_a_link_to_its_code(page):
    page.write_text("[`math.exp`](code.py#L1), [`def g`](code.py#L2)", encoding="utf-8")
    update(page)
    text = page.read_text(encoding="utf-8")
    assert text == "[`math.exp`](code.py#L5), [`def g`](code.py#L2)"
