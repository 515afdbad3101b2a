import re
import tomllib

import pytest
import torch

from regard.core.config import explain, from_dict
from regard.core.errors import ConfigError
from regard.models.build import build_model
from regard.tasks.recipe import Recipe, load_recipe, recipe_names, recipe_path

PAPERS = ("bahdanau2015", "cho2014", "luong2015", "sutskever2014")


@pytest.fixture(params=recipe_names())
def name(request):
    return request.param


def test_every_paper_has_a_recipe_for_a_gpu_and_for_a_laptop():
    assert {*PAPERS, *(f"{paper}-laptop" for paper in PAPERS)} <= set(recipe_names())


def test_shipped_recipe_loads_and_its_model_can_be_built(name):
    recipe = load_recipe(name)
    with torch.device("meta"):
        model = build_model(recipe.model, source_vocab_size=50, target_vocab_size=50)
    assert model.decoder.output.out_features == 50


def test_header_of_a_shipped_recipe_carries_its_run_line(name):
    header = recipe_path(name).read_text(encoding="utf-8").split("\n\n")[0]
    assert re.search(rf"^#   regard train \S+ --recipe {name}$", header, re.MULTILINE)


def test_explained_recipe_loads_back_to_the_same(name):
    recipe = load_recipe(name)
    assert from_dict(Recipe, tomllib.loads(explain(recipe))) == recipe


def test_words_change_a_recipe():
    recipe = load_recipe("bahdanau2015", ["train.max_steps=200", "model.decoder.kind=cho"])
    assert (recipe.train.max_steps, recipe.model.decoder.kind) == (200, "cho")


def test_words_come_after_what_the_data_asked_for():
    defaults = {"data.source.kind": "char", "data.is_joint": True, "data.source.vocab_size": 90}
    recipe = load_recipe("bahdanau2015-laptop", ["data.source.vocab_size=70"], defaults=defaults)
    assert recipe.data.is_joint
    assert (recipe.data.source.kind, recipe.data.source.vocab_size) == ("char", 70)


def test_recipe_can_be_a_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("seed = 7\n", encoding="utf-8")
    assert load_recipe(str(path)) == Recipe(seed=7)


def test_unknown_recipe_is_answered_with_the_nearest_name():
    with pytest.raises(
        ConfigError,
        match=r"`--recipe` must be a TOML file or one of 'bahdanau2015', .*, but is "
        r"'bahdanau2014'\. Did you mean 'bahdanau2015'\?",
    ):
        load_recipe("bahdanau2014")


def test_recipe_file_that_does_not_exist_is_named():
    with pytest.raises(ConfigError, match=r"absent\.toml does not exist\."):
        load_recipe("absent.toml")


def test_unknown_setting_is_answered_with_the_nearest_name():
    with pytest.raises(
        ConfigError, match=r"`train\.max_stpes` is not a setting\. Did you mean 'max_steps'\?"
    ):
        load_recipe("cho2014", ["train.max_stpes=3"])


def test_one_matrix_for_all_needs_one_vocabulary():
    with pytest.raises(
        ConfigError,
        match=r"`model\.ties` 'all' needs one joint vocabulary, but `data\.is_joint` is false\.",
    ):
        load_recipe("bahdanau2015-laptop", ["model.ties=all"])


def test_number_of_validation_examples_has_a_limit():
    with pytest.raises(
        ConfigError, match=r"`validation\.max_examples` must be at least 1, but is 0\."
    ):
        load_recipe("cho2014", ["validation.max_examples=0"])
