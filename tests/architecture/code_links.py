"""Check and update links to lines of code in the documentation.

The text of such a link is code that is found in that line, such as
[`class DotScore`](../regard/attention/scores.py#L40).

python tests/architecture/code_links.py --write    # updates the line numbers
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\[`([^`\n]+)`\]\(([\w./-]+\.py)#L(\d+)\)")


@dataclass(frozen=True)
class CodeLink:
    """Link to a line of code."""

    code: str
    path: Path
    line: int

    @property
    def lines(self) -> list[str]:
        """Lines of the file; none if it does not exist."""
        return self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []

    @property
    def is_right(self) -> bool:
        """Whether the line contains the code."""
        return self.line <= len(self.lines) and self.code in self.lines[self.line - 1]

    def find(self) -> int | None:
        """Return the number of the first line with the code, or None."""
        found = [number for number, line in enumerate(self.lines, start=1) if self.code in line]
        return found[0] if found else None


def pages() -> list[Path]:
    """Return all pages of the documentation."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def code_links(page: Path) -> Iterator[CodeLink]:
    """Yield the links of a page to lines of code."""
    for code, path, line in LINK.findall(page.read_text(encoding="utf-8")):
        yield CodeLink(code, (page.parent / path).resolve(), int(line))


def update(page: Path) -> None:
    """Rewrite the line numbers of a page; a link whose code is not found is unchanged."""

    def replace(match: re.Match[str]) -> str:
        code, path, line = match.groups()
        link = CodeLink(code, (page.parent / path).resolve(), int(line))
        number = link.line if link.is_right else link.find()
        return f"[`{code}`]({path}#L{number or line})"

    page.write_text(LINK.sub(replace, page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    for page in pages():
        if "--write" in sys.argv:
            update(page)
        for link in code_links(page):
            if not link.is_right:
                print(f"{page.relative_to(ROOT)}: `{link.code}` is not in line {link.line}")
