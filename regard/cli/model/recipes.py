"""`regard recipes`: list the built-in recipes."""

from typing import Annotated

from typer import Option

from regard.cli.options import Json

WIDTH = 100
"""Largest number of columns of the descriptions."""


def recipes(
    task: Annotated[str, Option(help="Only recipes of a task, such as generation.")] = "",
    as_json: Json = False,
) -> None:
    """List the built-in recipes: data, size, score, training time and model.

    Score and time are those of the recipe's header, which `regard explain RECIPE` prints with all
    settings.
    """
    import shutil
    import textwrap
    from dataclasses import asdict
    from itertools import groupby

    from regard.cli.output import print_json
    from regard.runs.recipe_list import list_recipes

    found = list_recipes(task)
    if as_json:
        print_json({"recipes": [asdict(one) for one in found]})
        return
    cells = [(one.name, one.data, _size(one.parameters), one.score, one.time) for one in found]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    columns = min(WIDTH, shutil.get_terminal_size((WIDTH, 0)).columns)
    rows = zip(found, cells, strict=True)
    for name, group in groupby(rows, key=lambda row: row[0].task):
        print(f"{name.replace('_', ' ').capitalize()} (--task {name})")
        for one, row in group:
            line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            print(f"  {line}".rstrip())
            for part in textwrap.wrap(one.model, columns - 6):
                print(f"      {part}")
        print()


def _size(parameters: int) -> str:
    """Return a number of parameters in millions or thousands."""
    if not parameters:
        return ""
    return f"{parameters / 1e6:.1f} M" if parameters >= 1e5 else f"{parameters / 1e3:.0f} k"
