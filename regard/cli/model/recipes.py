"""`regard recipes`: list the built-in recipes."""

from typing import Annotated

from typer import Option

from regard.cli.options import Json

WIDTH = 100
"""Largest number of columns of the list."""

MIN_WIDTH = 40
"""Smallest number of columns of the list."""


def recipes(
    task: Annotated[
        str, Option(help="Only recipes of a task, such as generation or translation.")
    ] = "",
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
    columns = min(WIDTH, max(MIN_WIDTH, shutil.get_terminal_size((WIDTH, 0)).columns))
    fit = textwrap.TextWrapper(columns, initial_indent="  ", subsequent_indent="      ")
    width = max(len(one.name) for one in found)
    for name, group in groupby(found, key=lambda one: one.task):
        print(f"{name.replace('_', ' ').capitalize()} (--task {name})")
        for one in group:
            result = ", ".join(part for part in (one.score, one.time) if part)
            print(fit.fill(f"{one.name.ljust(width)}  {result}".rstrip()))
            about = "; ".join(part for part in (one.data, _size(one.parameters), one.model) if part)
            print(textwrap.indent(textwrap.fill(about, columns - 6), " " * 6))
        print()


def _size(parameters: int) -> str:
    """Return a number of parameters in millions or thousands."""
    if not parameters:
        return ""
    size = f"{parameters / 1e6:.1f} M" if parameters >= 1e5 else f"{parameters / 1e3:.0f} k"
    return f"{size} parameters"
