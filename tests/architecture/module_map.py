"""Generate the module map in docs/architecture.md from the packages on disk.

python tests/architecture/module_map.py    # rewrites the map
"""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
START, END = "<!-- module map: generated -->", "<!-- end of the module map -->"
PACKAGES = (
    "core attention data metrics training plots models search tasks interpret runs interop "
    "studies bench serve cli"
).split()
WIDTH = 34


def module_map() -> str:
    """Return the map: one line per package and module with the first line of its docstring."""
    lines = ["regard/"]
    for package in PACKAGES:
        lines += _folder_lines(ROOT / "regard" / package, depth=1)
    return "\n".join(["```", *lines, "```"])


def written_map() -> str:
    """Return the map that docs/architecture.md holds."""
    return PAGE.read_text(encoding="utf-8").partition(START)[2].partition(END)[0].strip()


def _folder_lines(folder: Path, depth: int) -> list[str]:
    lines = [_line(f"{folder.name}/", depth, _purpose(folder / "__init__.py"))]
    for path in sorted(folder.iterdir(), key=lambda path: (path.is_dir(), path.name)):
        if (path / "__init__.py").exists():
            lines += _folder_lines(path, depth + 1)
        elif path.suffix == ".py" and path.name != "__init__.py":
            lines.append(_line(path.name, depth + 1, _purpose(path)))
    return lines


def _line(name: str, depth: int, meaning: str) -> str:
    return f"{'    ' * depth + name:<{WIDTH - 2}}  {meaning}"


def _purpose(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.split("\n")[0].rstrip(".")


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.partition(START)[0], page.partition(END)[2]
    PAGE.write_text(f"{before}{START}\n{module_map()}\n{END}{after}", encoding="utf-8")
