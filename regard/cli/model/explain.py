"""`regard explain`: all settings of a recipe with their descriptions."""

from regard.cli.options import RecipeName, RecipeOverrides


def explain(recipe: RecipeName, settings: RecipeOverrides = None) -> None:
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
