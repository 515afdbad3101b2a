import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = (
    "core attention data metrics training visual models search tasks exchange studies cli".split()
)
WIDTH = 28


def test_the_tree_in_the_readme_is_the_tree_on_disk():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    tree = "\n".join(
        line for room in ROOMS for line in folder_lines(ROOT / "regard" / room, depth=1)
    )
    assert tree in readme, f"README.md should hold this tree:\n{tree}"


def test_every_room_is_in_the_tree():
    rooms = {path.parent.name for path in (ROOT / "regard").glob("*/__init__.py")}
    assert rooms == set(ROOMS)


def folder_lines(folder: Path, depth: int) -> list[str]:
    lines = [line(f"{folder.name}/", depth, purpose(folder / "__init__.py"))]
    for path in sorted(folder.iterdir(), key=lambda path: (path.is_dir(), path.name)):
        if (path / "__init__.py").exists():
            lines += folder_lines(path, depth + 1)
        elif path.suffix == ".py" and path.name != "__init__.py":
            lines.append(line(path.name, depth + 1, purpose(path)))
    return lines


def line(name: str, depth: int, meaning: str) -> str:
    return f"{'    ' * depth}{name}".ljust(WIDTH) + meaning


def purpose(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.split("\n")[0].rstrip(".")
