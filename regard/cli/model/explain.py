"""`regard explain`: all settings of a recipe with their descriptions."""

from regard.cli.options import RecipeName, RecipeOverrides


def explain(recipe: RecipeName = "", settings: RecipeOverrides = None) -> None:
    """Print every setting of a recipe or a run with its description.

    The output begins with the paper, the command to train it and the expected score. It is a recipe
    in TOML that can be edited and passed to --recipe. `regard recipes` lists the recipes.
    """
    from regard.runs.explain import explain as explain_recipe

    print(explain_recipe(recipe, settings or []), end="")
