"""Links between pages of the documentation have a target, and no page names a local path."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)[^)]*\)")
MACHINE = re.compile(r"/(?:tmp|home|root|work|mnt|Users)/\S+")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def broken_links(path):
    """The relative links of a page whose file does not exist."""
    targets = LINK.findall(CODE.sub("", path.read_text(encoding="utf-8")))
    relative = [t.partition("#")[0] for t in targets if not re.match(r"\w+:|#", t)]
    return [target for target in relative if not (path.parent / target).exists()]


def test_links_of_the_documentation_resolve():
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")]
    faults = {page.name: links for page in pages if (links := broken_links(page))}
    assert faults == {}


def test_readme_links_to_the_softmax_over_keys():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    path, line = re.search(r"\((regard/attention/attend\.py)#L(\d+)\)", text).groups()
    assert ".softmax(-1)" in (ROOT / path).read_text(encoding="utf-8").splitlines()[int(line) - 1]


def test_readme_is_short():
    assert len((ROOT / "README.md").read_bytes()) <= 10_000


def test_no_page_contains_a_local_path():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.json")]
    texts = {page.name: page.read_text(encoding="utf-8") for page in pages}
    assert {
        name: found[0] for name, text in texts.items() if (found := MACHINE.findall(text))
    } == {}


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("[here](page.md)", []),
        ("[here](page.md#part) ![plot](plot.svg)", ["plot.svg"]),
        ("[here](absent.md 'title')", ["absent.md"]),
        ("[away](https://example.org/x) [mail](mailto:a@b.c) [up](#top)", []),
        ("`[code](absent.md)`\n```\n[code](absent.md)\n```", []),
    ],
)
def test_broken_links_are_found(tmp_path, text, faults):
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    assert broken_links(page) == faults
