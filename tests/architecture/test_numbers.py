"""Scores in the documents are those of the result pages they link to."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULT_LINK = re.compile(r"\(((?:docs/)?results/[\w-]+\.md)\)")
EXPECTED = re.compile(r"(Expect|accuracy|BLEU)(?P<text>.*?): ?(?P<page>docs/results/[\w-]+\.md)")
DECIMAL = re.compile(r"(?<![\w.,])\d+(?:,\d{3})*\.\d+(?![\w.]|,\d)")
# Where decimals are sizes or settings, not scores: a learning rate, a width, a version.
NOT_SCORES = re.compile(r"`[^`]*`|\[[^\]]*\]\([^)]*\)")


def unsupported_numbers(text, base):
    """Return (numbers, pages) of each passage whose numbers are not on the pages it links to."""
    faults = []
    for passage in re.split(r"\n\s*\n|\n(?=[|-] ?)", text):
        pages = [base / link for link in RESULT_LINK.findall(passage)]
        if not pages:
            continue
        known = {n for page in pages for n in DECIMAL.findall(page.read_text(encoding="utf-8"))}
        numbers = set(DECIMAL.findall(NOT_SCORES.sub("", passage)))
        if numbers - known:
            faults.append((sorted(numbers - known), [page.name for page in pages]))
    return faults


# docs/recipes.md is generated from the result files.
DOCUMENTS = [
    ROOT / "README.md",
    *sorted({*(ROOT / "docs").glob("*.md")} - {ROOT / "docs/recipes.md"}),
]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_scores_of_documents_are_on_the_linked_result_pages(path):
    assert unsupported_numbers(path.read_text(encoding="utf-8"), path.parent) == []


def read_header(path):
    """Return the comment at the top of a recipe as one line."""
    return re.match(r"(?:#.*\n)*", path.read_text(encoding="utf-8"))[0].replace("\n#", "")


# Recipes whose header refers to a result page.
EXPECTATIONS = {
    path.stem: found
    for path in sorted((ROOT / "regard/recipes").glob("*.toml"))
    if (found := EXPECTED.search(read_header(path)))
}


def test_scores_of_the_readme_have_a_result_page():
    rows = re.findall(r"^\| .*\d\.\d.* \|$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    assert rows
    assert [row for row in rows if not RESULT_LINK.search(row)] == []


@pytest.mark.parametrize("recipe", EXPECTATIONS)
def test_scores_of_a_recipe_header_are_on_its_result_page(recipe):
    found = EXPECTATIONS[recipe]
    known = DECIMAL.findall((ROOT / found["page"]).read_text(encoding="utf-8"))
    assert {*DECIMAL.findall(NOT_SCORES.sub("", found["text"]))} <= {*known}


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("| a | 1.5 | [x](results/x.md) |", []),
        ("| a | 2.5 | [x](results/x.md) |", [(["2.5"], ["x.md"])]),
        ("| a | 2.5 |\n| b | 1.5 | [x](results/x.md) |", []),
        ("Text with 2.5 and [x](results/x.md).", [(["2.5"], ["x.md"])]),
        ("Width `0.5`, see [x 2.5](results/x.md).", []),
    ],
)
def test_numbers_that_no_page_supports_are_found(tmp_path, text, faults):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "x.md").write_text("score 1.5 ± 0.2", encoding="utf-8")
    assert unsupported_numbers(text, tmp_path) == faults
