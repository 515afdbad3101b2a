import tomllib

from regard.core.config import from_dict
from regard.runs.recipes import load_recipe
from regard.tasks.generation.recipe import Recipe


def test_explained_recipe_can_be_used(regard, tmp_path):
    result = regard("explain", "luong2015", "train.max_epochs=3")
    path = tmp_path / "mine.toml"
    path.write_text(result.out, encoding="utf-8")
    assert load_recipe(str(path)) == load_recipe("luong2015", ["train.max_epochs=3"])


def test_header_and_descriptions_of_settings_are_printed(regard):
    result = regard("explain", "bahdanau2015")
    assert result.lines[0].startswith("# Bahdanau et al. 2015")
    assert "# Number of beams; 1 is greedy search." in result.lines


def test_recipe_without_a_header_is_explained(regard, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("seed = 7\n", encoding="utf-8")
    explained = tomllib.loads(regard("explain", path).out)
    assert from_dict(Recipe, explained) == Recipe(seed=7)
