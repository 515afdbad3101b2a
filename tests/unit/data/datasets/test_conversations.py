import json
import sys
from importlib.util import find_spec

import pytest

from regard.core.errors import DataError
from regard.data.datasets import conversations
from regard.data.datasets.catalog import find_data
from regard.data.datasets.conversations import load_chitchat, read_chitchat, reply_examples
from regard.data.example import Example
from regard.data.text.dialogue import write_context

TURNS = [f"turn {number}" for number in range(6)]


def message(sender, text):
    return {"sender": sender, "text": text, "timestamp": "2018-05-02T19:38:15Z"}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Put a package of the same name, with few conversations, before the real one."""
    folder = tmp_path / "chitchat_dataset"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "chitchat_dataset", raising=False)

    def write(values):
        text = json.dumps({name: {"messages": blocks} for name, blocks in values.items()})
        (folder / "dataset.json").write_text(text, encoding="utf-8")

    yield write
    sys.modules.pop("chitchat_dataset", None)


@pytest.fixture
def many(package):
    package(
        {
            f"conversation {number}": [
                [message("ab"[place % 2], f"turn {place} of {number}")] for place in range(4)
            ]
            for number in range(400)
        }
    )


def test_what_one_speaker_says_in_a_row_is_one_turn(package):
    first = [message("a", "Hello"), message("a", " how  are\nyou? ")]
    package({"one": [first, [message("a", "?")], [message("b", "fine"), message("b", "thanks")]]})
    assert read_chitchat() == {"one": ["Hello how are you? ?", "fine thanks"]}


def test_empty_messages_part_no_turn(package):
    blocks = [[message("a", "so")], [message("b", " \n")], [message("a", "yes")]]
    package({"one": blocks, "none": [[message("a", "")]]})
    assert read_chitchat() == {"one": ["so yes"], "none": []}


def test_every_turn_but_the_first_is_a_reply():
    assert reply_examples(TURNS[:3]) == [
        Example("you: turn 0", "turn 1"),
        Example("me: turn 0 you: turn 1", "turn 2"),
    ]


@pytest.mark.parametrize("num_turns", [1, 3, 5])
def test_a_reply_is_written_from_the_turns_before_it(num_turns):
    found = reply_examples(TURNS, num_turns=num_turns)
    assert [example.target for example in found] == TURNS[1:]
    assert [example.source for example in found] == [
        write_context(TURNS[:place], most=num_turns) for place in range(1, 6)
    ]


@pytest.mark.parametrize("turns", [[], ["alone"]])
def test_who_speaks_alone_gets_no_reply(turns):
    assert reply_examples(turns) == []


def test_a_conversation_is_on_one_side(many):
    splits = find_data("chitchat")
    sides = [
        {example.target.split()[-1] for example in side}
        for side in (splits.train, splits.valid, splits.test)
    ]
    assert all(len(side) >= 5 for side in sides)
    assert len(set.union(*sides)) == sum(map(len, sides)) == 400


def test_the_side_hangs_on_the_seed_and_the_conversation_alone(many):
    first, again, other = (find_data("chitchat", seed=seed) for seed in (0, 0, 1))
    assert first == again
    assert {example.source for example in first.test} != {example.source for example in other.test}


def test_held_out_replies_are_limited_and_go_to_no_other_side(many, monkeypatch):
    whole = load_chitchat("", 0)
    monkeypatch.setattr(conversations, "MAX_HELD_OUT", 7)
    limited = load_chitchat("", 0)
    assert (limited.valid, limited.test) == (whole.valid[:7], whole.test[:7])
    assert limited.train == whole.train


def test_the_note_tells_conversations_and_replies(package):
    package({"one": [[message("a", "hi")], [message("b", "ho")]], "two": [[message("a", "hi")]]})
    assert find_data("chitchat").note == (
        "1 conversations of the `chitchat-dataset` package, seed 0, split by conversation: "
        "1 train, 0 valid, 0 test"
    )


def test_reversed_a_reply_tells_the_turn_before_it(many):
    there, back = find_data("chitchat:1"), find_data("chitchat:reversed")
    for side in ("train", "valid", "test"):
        told = [Example(e.target, e.source.removeprefix("you: ")) for e in getattr(there, side)]
        assert getattr(back, side) == told


def test_a_number_that_changes_nothing_is_said(many, caplog):
    with caplog.at_level("WARNING"):
        assert find_data("chitchat:5,reversed") == find_data("chitchat:reversed")
    assert "'chitchat:5,reversed' is 'chitchat:reversed'" in caplog.text


@pytest.mark.parametrize(
    "argument",
    ["0", "-1", "many", "3,4", "3,", ",reversed", "3reversed", "reversed,3", "³", "1000"],
)
def test_other_arguments_are_refused(argument):
    expected = (
        rf"The argument of 'chitchat:' must be the number of context turns.*but is '{argument}'\."
    )
    with pytest.raises(DataError, match=expected):
        find_data(f"chitchat:{argument}")


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "chitchat_dataset", None)
    with pytest.raises(DataError, match=r"'chitchat' needs a package.*pip install regard\[data\]"):
        find_data("chitchat")


@pytest.mark.skipif(
    find_spec("chitchat_dataset") is None, reason="the package chitchat-dataset is not installed"
)
def test_no_word_of_the_real_conversations_is_lost():
    from chitchat_dataset import Dataset

    found = read_chitchat()
    with open(Dataset.__init__.__defaults__[0], encoding="utf-8") as file:
        values = json.load(file)
    assert len(found) == 7168
    for name, value in values.items():
        texts = " ".join(message["text"] for block in value["messages"] for message in block)
        assert " ".join(found[name]).split() == texts.split()
