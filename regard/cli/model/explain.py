"""`regard explain`: all settings of a recipe with their descriptions."""

from typing import Annotated

from typer import Argument


def explain(
    recipe: Annotated[str, Argument(help="A recipe's name or a TOML file.")],
    settings: Annotated[
        list[str] | None, Argument(metavar="[section.key=value ...]", help="Overrides.")
    ] = None,
) -> None:
    """Print every setting of a recipe with its description.

    The output begins with the paper, the command to train it and the expected score. It is a recipe
    in TOML that can be edited and passed to --recipe.
    """
    from regard.core import config
    from regard.runs.recipes import load_recipe, recipe_path

    path = recipe_path(recipe)
    loaded = load_recipe(recipe, settings or [])
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        print(line)
    print()
    print(config.explain(loaded), end="")
