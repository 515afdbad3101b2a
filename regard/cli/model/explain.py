"""`regard explain`: all settings of a recipe with their descriptions."""

from typing import Annotated

from typer import Argument


def explain(
    recipe: Annotated[
        str, Argument(metavar="RECIPE", help="A recipe's name, a TOML file or a run folder.")
    ] = "",
    settings: Annotated[
        list[str] | None, Argument(metavar="[section.key=value ...]", help="Overrides.")
    ] = None,
) -> None:
    """Print every setting of a recipe or a run with its description.

    The output begins with the paper, the command to train it and the expected score. It is a recipe
    in TOML that can be edited and passed to --recipe. `regard recipes` lists the recipes.
    """
    from regard.runs.explain import explain as explain_recipe

    print(explain_recipe(recipe, settings or []), end="")
