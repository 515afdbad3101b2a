import pytest

from regard.cli.arguments import split_columns, split_words
from regard.core.errors import ConfigError


def test_files_and_settings_are_told_apart_in_any_order():
    words = ["train.seed=2", "a.tsv", "b.tsv", "model.ties=all"]
    assert split_words(words, most_paths=2) == (
        ["a.tsv", "b.tsv"],
        ["train.seed=2", "model.ties=all"],
    )


def test_path_may_hold_an_equals_sign():
    words = ["./a=b.tsv", "/data/c=d.tsv"]
    assert split_words(words, most_paths=2) == (words, [])


def test_argument_of_a_data_set_may_hold_an_equals_sign():
    words = ["fsdd:speaker=theo", "train.seed=2", "data.columns=a:b"]
    assert split_words(words, most_paths=2) == (words[:1], words[1:])


def test_settings_without_data_are_refused():
    with pytest.raises(ConfigError, match=r"No data was given\. Name a data set or a file"):
        split_words(["train.seed=2"], most_paths=2)


def test_too_many_files_are_counted_and_named():
    with pytest.raises(
        ConfigError, match=r"At most 2 files can be given, but there are 3: a, b, c\."
    ):
        split_words(["a", "b", "c"], most_paths=2)


def test_default_stands_for_no_file():
    assert split_words(["search.beams=2"], most_paths=1, default="-") == (["-"], ["search.beams=2"])
    assert split_words(["a"], most_paths=1, default="-") == (["a"], [])


def test_one_file_is_counted_in_the_singular():
    with pytest.raises(ConfigError, match=r"At most 1 file can be given, but there are 2: a, b\."):
        split_words(["a", "b"], most_paths=1)


def test_columns_may_have_blanks_between_them():
    assert split_columns("source, target,-") == ("source", "target", "-")
