import pytest

from regard.cli.arguments import (
    is_override,
    overrides_last,
    split_arguments,
    split_columns,
    split_training_arguments,
)
from regard.core.errors import ConfigError


def test_files_and_overrides_are_separated_in_any_order():
    arguments = ["train.seed=2", "a.tsv", "b.tsv", "model.ties=all"]
    assert split_arguments(arguments, max_paths=2) == (
        ["a.tsv", "b.tsv"],
        ["train.seed=2", "model.ties=all"],
    )


def test_path_may_contain_an_equals_sign():
    arguments = ["./a=b.tsv", "/data/c=d.tsv"]
    assert split_arguments(arguments, max_paths=2) == (arguments, [])


def test_argument_of_a_data_set_may_contain_an_equals_sign():
    arguments = ["fsdd:speaker=theo", "train.seed=2", "data.columns=a:b"]
    assert split_arguments(arguments, max_paths=2) == (arguments[:1], arguments[1:])


def test_overrides_without_data_are_refused():
    with pytest.raises(ConfigError, match=r"No data was given\. Name a data set or a file"):
        split_arguments(["train.seed=2"], max_paths=2)


def test_too_many_files_are_counted_and_named():
    with pytest.raises(
        ConfigError, match=r"At most 2 files can be given, but there are 3: a, b, c\."
    ):
        split_arguments(["a", "b", "c"], max_paths=2)


def test_default_is_used_without_a_file():
    assert split_arguments(["search.beams=2"], max_paths=1, default="-") == (
        ["-"],
        ["search.beams=2"],
    )
    assert split_arguments(["a"], max_paths=1, default="-") == (["a"], [])


def test_message_for_one_file_is_singular():
    with pytest.raises(ConfigError, match=r"At most 1 file can be given, but there are 2: a, b\."):
        split_arguments(["a", "b"], max_paths=1)


def test_spaces_between_columns_are_stripped():
    assert split_columns("source, target,-") == ("source", "target", "-")


def test_overrides_are_moved_behind_other_arguments():
    arguments = ["search.beams=1", "run", "--out", "a=b", "two words", "train.seed=2", "-q"]
    assert overrides_last(arguments, options_with_value={"--out"}) == [
        "run",
        "--out",
        "a=b",
        "two words",
        "-q",
        "search.beams=1",
        "train.seed=2",
    ]


@pytest.mark.parametrize("argument", ["x = 3", "2+2=", "./a=b", "data/a=b", "fsdd:speaker=theo"])
def test_texts_and_paths_are_no_overrides(argument):
    assert not is_override(argument)


def test_columns_and_seed_are_overrides_of_a_recipe():
    paths, overrides = split_training_arguments(["a.tsv"], columns="source,target", seed=3)
    assert (paths, overrides) == (["a.tsv"], ['data.columns=["source", "target"]', "seed=3"])
