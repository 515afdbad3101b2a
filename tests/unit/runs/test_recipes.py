import pytest

from regard.core.errors import ConfigError
from regard.runs.recipes import load_recipe
from regard.tasks.generation.recipe import Recipe


def test_overrides_change_a_recipe():
    recipe = load_recipe("bahdanau2015", ["train.max_steps=200", "model.decoder.kind=cho"])
    assert (recipe.train.max_steps, recipe.model.decoder.kind) == (200, "cho")


def test_overrides_win_over_settings_chosen_from_the_data():
    defaults = {"data.source.kind": "char", "data.is_joint": True, "data.source.vocab_size": 90}
    recipe = load_recipe("bahdanau2015-laptop", ["data.source.vocab_size=70"], defaults=defaults)
    assert recipe.data.is_joint
    assert (recipe.data.source.kind, recipe.data.source.vocab_size) == ("char", 70)


def test_recipe_can_be_a_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("seed = 7\n", encoding="utf-8")
    assert load_recipe(str(path)) == Recipe(seed=7)


def test_error_in_a_file_names_the_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("sed = 7\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"mine\.toml: `sed` is not a setting"):
        load_recipe(str(path))


def test_error_in_an_override_does_not_name_the_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("seed = 7\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"^`sed` is not a setting"):
        load_recipe(str(path), ["sed=8"])


def test_error_for_an_unknown_recipe_suggests_three_names():
    with pytest.raises(
        ConfigError,
        match=r"is 'bahdanau2014'\. Nearest: 'bahdanau2015', '\S+', '\S+'\. `regard recipes`",
    ):
        load_recipe("bahdanau2014")


def test_recipe_file_that_does_not_exist_is_named():
    with pytest.raises(ConfigError, match=r"absent\.toml does not exist\."):
        load_recipe("absent.toml")


def test_error_for_an_unknown_setting_suggests_a_name():
    with pytest.raises(
        ConfigError, match=r"`train\.max_stpes` is not a setting\. Did you mean 'max_steps'\?"
    ):
        load_recipe("cho2014", ["train.max_stpes=3"])


def test_error_for_a_recipe_without_similar_names_does_not_list_all():
    with pytest.raises(ConfigError, match=r"'xyzzy'\. `regard recipes` lists all\.$"):
        load_recipe("xyzzy")


def test_single_string_of_overrides_is_refused():
    with pytest.raises(TypeError, match="`overrides` must be a list.*train"):
        load_recipe("bahdanau2015-laptop", "train.max_epochs=1")
