import pytest

from regard.core.errors import DataError
from regard.data.example import Example
from regard.data.splits import Splits
from regard.tasks.generation.recipe import DataConfig
from regard.tasks.reading import read_pairs
from regard.tasks.word_links import add_links

EXAMPLES = [Example("the house .", "das Haus ."), Example("U.S. law", "Recht")]


def write(path, *lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def test_links_are_added_to_pairs(tmp_path):
    path = write(tmp_path / "links", "0-0 1p1", "1-0")
    assert add_links(EXAMPLES, path)[0].alignment == ((0, 0), (1, 1))


def test_words_at_whitespace_become_words_and_punctuation(tmp_path):
    path = write(tmp_path / "links", "", "0-0")
    # 'U.S.' is four words of an alignment: U . S .
    assert add_links(EXAMPLES, path)[1].alignment == ((0, 0), (1, 0), (2, 0), (3, 0))


def test_only_training_pairs_of_splits_get_links(tmp_path):
    splits = Splits(EXAMPLES[:1], EXAMPLES[1:], EXAMPLES[1:], "note")
    added = add_links(splits, write(tmp_path / "links", "0-0"))
    assert added.train[0].alignment and added.valid[0].alignment is None


def test_another_number_of_lines_is_refused(tmp_path):
    path = write(tmp_path / "links", "0-0")
    with pytest.raises(DataError, match="has 1 lines, but there are 2 training pairs"):
        add_links(EXAMPLES, path)


def test_link_outside_its_pair_is_refused_with_its_line(tmp_path):
    path = write(tmp_path / "links", "0-0", "2-0")
    with pytest.raises(DataError, match="line 2: the link 2-0 is outside its pair of 2 and 1"):
        add_links(EXAMPLES, path)


def test_setting_reads_the_links_of_the_training_file(tmp_path):
    lines = [f"word{number}\tWort{number}" for number in range(30)]
    data = write(tmp_path / "pairs.tsv", *lines)
    links = write(tmp_path / "links", *["0-0"] * 30)
    splits = read_pairs((data,), (), (), config=DataConfig(links=links))
    assert all(example.alignment == ((0, 0),) for example in splits.train)
