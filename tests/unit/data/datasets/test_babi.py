import os
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from regard.core.errors import DataError
from regard.data.datasets.babi import read_stories
from regard.data.datasets.catalog import find_data
from regard.data.example import Example

DATA = os.environ.get("REGARD_DATA", "")
ARCHIVE = Path(DATA) / "babi" / "babi_en_1k.zip"

STORIES = """\
1 Mary took the milk.
2 Where is Mary? \tkitchen\t1
3 Mary took the apple there.
4 Mary went to the hall.
5 What is Mary carrying?\tmilk,apple\t3 1
1 John is in the hall.
2 Is John in the hall?\tyes\t1
"""


def write_archive(folder, files):
    (folder / "babi").mkdir()
    with zipfile.ZipFile(folder / "babi" / "babi_en_1k.zip", "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Two tasks with 30 training stories each and the questions above as test split."""
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    files = {}
    for name in ("qa1_single-fact", "qa12_conjunction"):
        stories = [
            f"1 Mary took {i}.\n2 What?\tit\t1\n3 John took {i}.\n4 Who?\tall\t1\n"
            for i in range(30)
        ]
        files[f"en/{name}_train.txt"] = "".join(stories)
        files[f"en/{name}_test.txt"] = STORIES
    write_archive(tmp_path, files)


def test_source_is_story_and_question_with_supporting_facts_as_alignment():
    first, second = read_stories(STORIES, tag="t")
    assert first == [
        Example(
            ("Mary took the milk.", "Where is Mary?"), "kitchen", alignment=((0, 0),), tags=("t",)
        ),
        Example(
            (
                "Mary took the milk.",
                "Mary took the apple there.",
                "Mary went to the hall.",
                "What is Mary carrying?",
            ),
            "milk, apple",
            alignment=((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)),
            tags=("t",),
        ),
    ]
    assert [question.source[0] for question in second] == ["John is in the hall."]


def test_questions_of_a_story_are_in_one_split(small):
    splits = find_data("babi:1")
    assert (len(splits.train), len(splits.valid), len(splits.test)) == (54, 6, 3)
    stories = [{e.source[0] for e in part} for part in (splits.train, splits.valid)]
    assert not stories[0] & stories[1]
    assert find_data("babi:1") == splits
    assert find_data("babi:1", seed=1).valid != splits.valid


def test_task_number_1_does_not_match_task_12(small):
    assert {e.tags for e in find_data("babi:12").test} == {("12 conjunction",)}
    assert {e.tags for e in find_data("babi:1").test} == {("01 single fact",)}


def test_several_tasks_are_concatenated(small):
    splits = find_data("babi:12,1")
    assert [e.tags[0] for e in splits.test] == ["12 conjunction"] * 3 + ["01 single fact"] * 3
    assert splits.valid == find_data("babi:12").valid + find_data("babi:1").valid


@pytest.mark.parametrize("argument", ["0", "21", "three", "1,", "1,1", "01"])
def test_invalid_task_numbers_raise(small, argument):
    with pytest.raises(DataError, match=rf"a task, 1 to 20, or several .* but is '{argument}'\."):
        find_data(f"babi:{argument}")


def test_missing_task_in_archive_raises(small):
    with pytest.raises(DataError, match=r"babi_en_1k\.zip must contain a file en/qa2_…_train\.txt"):
        find_data("babi")


def test_missing_archive_raises_with_expected_path(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"`REGARD_DATA` .* contains babi/babi_en_1k.zip"):
        find_data("babi")


@pytest.mark.skipif(not ARCHIVE.is_file(), reason="REGARD_DATA has no babi/babi_en_1k.zip")
def test_real_tasks_have_1000_questions_each():
    splits = find_data("babi")
    counts = Counter(e.tags[0] for e in (*splits.train, *splits.valid))
    assert Counter(e.tags[0] for e in splits.test) == counts
    assert set(counts.values()) == {1000}
    assert len(counts) == 20
    assert max(len(e.source) for e in splits.test) == 229
    for example in splits.test:
        facts = {fact for fact, _ in example.alignment}
        assert facts <= set(range(len(example.source) - 1))
        assert facts
