import tomllib

from regard.core.config import from_dict
from regard.runs.recipes import load_recipe
from regard.tasks.generation.recipe import Recipe


def test_explained_recipe_can_be_used(regard, tmp_path):
    answer = regard("explain", "luong2015", "train.max_epochs=3")
    path = tmp_path / "mine.toml"
    path.write_text(answer.out, encoding="utf-8")
    assert load_recipe(str(path)) == load_recipe("luong2015", ["train.max_epochs=3"])


def test_header_and_meaning_of_every_setting_are_printed(regard):
    answer = regard("explain", "bahdanau2015")
    assert answer.lines[0].startswith("# Bahdanau et al. 2015")
    assert "# Hypotheses kept a sentence; 1 is greedy search." in answer.lines


def test_own_recipe_without_a_header_is_explained(regard, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("seed = 7\n", encoding="utf-8")
    explained = tomllib.loads(regard("explain", path).out)
    assert from_dict(Recipe, explained) == Recipe(seed=7)
