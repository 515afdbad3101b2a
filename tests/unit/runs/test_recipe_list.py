import pytest

from regard.core.errors import ConfigError
from regard.runs.recipe_list import PARAMETERS, list_recipes
from regard.runs.recipes import recipe_names, recipe_path

SUMMARIES = {one.name: one for one in list_recipes()}


def test_every_recipe_is_listed_once():
    assert sorted(SUMMARIES) == recipe_names()


@pytest.mark.parametrize("one", SUMMARIES.values(), ids=SUMMARIES)
def test_header_of_a_recipe_has_a_summary(one):
    assert one.data
    assert one.model
    header = recipe_path(one.name).read_text(encoding="utf-8").split("\n\n")[0]
    assert one.score or "Not measured yet" in header or "not run here" in header


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("bahdanau2015", ("multi30k", 5_995_840, "35.5 BLEU", "6 min, H200")),
        ("bahdanau2015-laptop", ("phrasebook", 1_142_160, "96.7 BLEU", "3 min, 2 cores")),
        ("colouring-laptop", ("shapes:2000", 57_875, "PSNR 26.8 dB", "1 min, 1 core")),
        ("vaswani2017-base", ("multi30k", 60_554_496, "", "")),
    ],
)
def test_summary_of_a_recipe(name, values):
    one = SUMMARIES[name]
    assert (one.data, one.parameters, one.score, one.time) == values


def test_model_is_the_first_sentence_without_the_paper():
    assert SUMMARIES["cho2014"].model.startswith("GRU encoder whose last state")


def test_recipes_of_a_task():
    assert {one.task for one in list_recipes("grounding")} == {"grounding"}
    with pytest.raises(ConfigError, match="Did you mean 'grounding'"):
        list_recipes("groundin")


def test_sizes_are_those_of_recipes():
    from regard.core.files import read_json

    assert {*read_json(recipe_path("cho2014").with_name(PARAMETERS))} <= {*recipe_names()}


@pytest.mark.parametrize("name", ["translation", "question answering", "Question-Answering"])
def test_application_names_its_task(name):
    assert list_recipes(name) == list_recipes("generation")
