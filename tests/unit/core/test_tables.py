import pytest

from regard.core.errors import ConfigError
from regard.core.tables import did_you_mean, one_of, pick, resolve

TABLE = {"dot": 1, "additive": 2}


def test_pick_returns_the_entry():
    assert pick(TABLE, "additive", "score") == 2


def test_unknown_name_lists_the_names_and_the_nearest():
    with pytest.raises(ConfigError) as error:
        pick(TABLE, "aditive", "score")
    assert str(error.value) == (
        "`score` must be one of 'dot', 'additive', but is 'aditive'. Did you mean 'additive'?"
    )


def test_unknown_name_without_a_similar_name_gets_no_suggestion():
    with pytest.raises(ConfigError, match=r"but is 'cosine'\.$"):
        pick(TABLE, "cosine", "score")


def test_names_are_quoted_in_their_order():
    assert one_of(TABLE) == "one of 'dot', 'additive'"


def test_suggestion_among_no_names_is_empty():
    assert did_you_mean("dot", []) == ""


def test_beginning_of_a_name_is_a_suggestion():
    assert did_you_mean("conv", ["rnn", "convolution"]) == " Did you mean 'convolution'?"
    assert did_you_mean("co", ["rnn", "convolution"]) == ""


def test_import_path_is_resolved():
    assert resolve("regard.core.tables:pick") is pick
