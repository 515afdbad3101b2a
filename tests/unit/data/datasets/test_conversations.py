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
    """Install a package of the same name with few conversations before the real one."""
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
def four_hundred(package):
    package(
        {
            f"conversation {number}": [
                [message("ab"[turn % 2], f"turn {turn} of {number}")] for turn in range(4)
            ]
            for number in range(400)
        }
    )


def test_consecutive_messages_of_one_speaker_are_one_turn(package):
    first = [message("a", "Hello"), message("a", " how  are\nyou? ")]
    package({"one": [first, [message("a", "?")], [message("b", "fine"), message("b", "thanks")]]})
    assert read_chitchat() == {"one": ["Hello how are you? ?", "fine thanks"]}


def test_empty_messages_are_ignored(package):
    blocks = [[message("a", "so")], [message("b", " \n")], [message("a", "yes")]]
    package({"one": blocks, "none": [[message("a", "")]]})
    assert read_chitchat() == {"one": ["so yes"], "none": []}


def test_every_turn_except_the_first_is_a_reply():
    assert reply_examples(TURNS[:3]) == [
        Example("you: turn 0", "turn 1"),
        Example("me: turn 0 you: turn 1", "turn 2"),
    ]


@pytest.mark.parametrize("num_turns", [1, 3, 5])
def test_source_is_the_context_before_the_reply(num_turns):
    examples = reply_examples(TURNS, num_turns=num_turns)
    assert [example.target for example in examples] == TURNS[1:]
    assert [example.source for example in examples] == [
        write_context(TURNS[:index], max_turns=num_turns) for index in range(1, 6)
    ]


@pytest.mark.parametrize("turns", [[], ["alone"]])
def test_conversation_of_one_turn_has_no_examples(turns):
    assert reply_examples(turns) == []


def test_each_conversation_is_in_one_split(four_hundred):
    splits = find_data("chitchat")
    parts = [
        {example.target.split()[-1] for example in part}
        for part in (splits.train, splits.valid, splits.test)
    ]
    assert all(len(part) >= 5 for part in parts)
    assert len(set.union(*parts)) == sum(map(len, parts)) == 400


def test_split_depends_on_seed_and_conversation_only(four_hundred):
    first, again, other = (find_data("chitchat", seed=seed) for seed in (0, 0, 1))
    assert first == again
    assert {example.source for example in first.test} != {example.source for example in other.test}


def test_held_out_replies_beyond_the_limit_are_dropped(four_hundred, monkeypatch):
    unlimited = load_chitchat("", 0)
    monkeypatch.setattr(conversations, "MAX_HELD_OUT", 7)
    limited = load_chitchat("", 0)
    assert (limited.valid, limited.test) == (unlimited.valid[:7], unlimited.test[:7])
    assert limited.train == unlimited.train


def test_note_has_number_of_conversations_and_sizes(package):
    package({"one": [[message("a", "hi")], [message("b", "ho")]], "two": [[message("a", "hi")]]})
    assert find_data("chitchat").note == (
        "1 conversations of the `chitchat-dataset` package, seed 0, split by conversation: "
        "1 train, 0 valid, 0 test"
    )


def test_reversed_predicts_the_turn_before_a_reply(four_hundred):
    forward, backward = find_data("chitchat:1"), find_data("chitchat:reversed")
    for part in ("train", "valid", "test"):
        examples = getattr(forward, part)
        expected = [Example(e.target, e.source.removeprefix("you: ")) for e in examples]
        assert getattr(backward, part) == expected


def test_number_with_reversed_logs_a_warning(four_hundred, caplog):
    with caplog.at_level("WARNING"):
        assert find_data("chitchat:5,reversed") == find_data("chitchat:reversed")
    assert "'chitchat:5,reversed' is 'chitchat:reversed'" in caplog.text


@pytest.mark.parametrize(
    "argument",
    ["0", "-1", "many", "3,4", "3,", ",reversed", "3reversed", "reversed,3", "³", "1000"],
)
def test_invalid_arguments_raise(argument):
    expected = (
        rf"The argument of 'chitchat:' must be the number of context turns.*but is '{argument}'\."
    )
    with pytest.raises(DataError, match=expected):
        find_data(f"chitchat:{argument}")


def test_missing_package_raises_with_install_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "chitchat_dataset", None)
    with pytest.raises(DataError, match=r"'chitchat' needs a package.*'regard\[data\]'"):
        find_data("chitchat")


@pytest.mark.skipif(
    find_spec("chitchat_dataset") is None, reason="the package chitchat-dataset is not installed"
)
def test_real_conversations_keep_all_words():
    from chitchat_dataset import Dataset

    conversations = read_chitchat()
    with open(Dataset.__init__.__defaults__[0], encoding="utf-8") as file:
        values = json.load(file)
    assert len(conversations) == 7168
    for name, value in values.items():
        texts = " ".join(message["text"] for block in value["messages"] for message in block)
        assert " ".join(conversations[name]).split() == texts.split()
