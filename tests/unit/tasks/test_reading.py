import pytest

from regard.core.errors import ConfigError
from regard.runs.recipes import load_recipe
from regard.tasks.reading import with_columns


def test_columns_of_sources_other_than_text_are_for_pairs_only():
    recipe = load_recipe("moving-laptop")
    columns = ("-", "source", "target")
    assert with_columns(recipe, columns).data.columns == columns
    with pytest.raises(ConfigError, match="`--columns`.*'video'"):
        with_columns(recipe, columns, needs_target=False)


def test_columns_of_tasks_without_columns_are_refused():
    with pytest.raises(ConfigError, match="`--columns`.*'classification'"):
        with_columns(load_recipe("he2016-laptop"), ("source", "target"))
