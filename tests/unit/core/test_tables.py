import pytest

from regard.core.errors import ConfigError
from regard.core.tables import did_you_mean, one_of, pick, resolve

TABLE = {"dot": 1, "additive": 2}


def test_pick_returns_the_row():
    assert pick(TABLE, "additive", "score") == 2


def test_unknown_name_lists_the_names_and_the_nearest():
    with pytest.raises(ConfigError) as error:
        pick(TABLE, "aditive", "score")
    assert str(error.value) == (
        "`score` must be one of 'dot', 'additive', but is 'aditive'. Did you mean 'additive'?"
    )


def test_name_near_to_nothing_gets_no_guess():
    with pytest.raises(ConfigError, match=r"but is 'cosine'\.$"):
        pick(TABLE, "cosine", "score")


def test_names_are_quoted_in_their_order():
    assert one_of(TABLE) == "one of 'dot', 'additive'"


def test_nearest_of_no_names_is_nothing():
    assert did_you_mean("dot", []) == ""


def test_dotted_name_is_imported():
    assert resolve("regard.core.tables:pick") is pick
