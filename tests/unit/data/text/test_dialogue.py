import pytest

from regard.core.errors import ConfigError
from regard.data.text.dialogue import TURNS, clean_turn, has_turns, write_context


def test_turns_have_the_speaker_as_prefix():
    turns = ["hi there", "hello", "how are you"]
    assert write_context(turns) == "you: hi there me: hello you: how are you"


@pytest.mark.parametrize("num", [1, 2, 3, 4, 5])
def test_the_last_turn_is_always_that_of_the_other_speaker(num):
    context = write_context(["so"] * num, max_turns=num)
    assert context.endswith("you: so")
    assert context.count("you:") - context.count("me:") == num % 2


def test_earlier_turns_are_left_out():
    turns = [f"turn {number}" for number in range(9)]
    assert write_context(turns) == write_context(turns[-TURNS:])
    assert write_context(turns, max_turns=1) == "you: turn 8"


def test_a_turn_becomes_one_line_of_printable_characters():
    assert write_context(["  one\n two\tthree \x00\x1b[0m\u2028four\ud800 "]) == (
        "you: one two three [0m four"
    )


def test_other_scripts_and_marks_are_kept():
    assert clean_turn("Grüße 👩‍👩‍👧 は¿") == "Grüße 👩‍👩‍👧 は¿"


def test_an_empty_turn_is_kept():
    assert write_context(["a", "", "b"]) == "you: a me: you: b"


def test_no_turns_give_an_empty_text():
    assert write_context([]) == ""


def test_max_turns_is_at_least_one():
    with pytest.raises(ConfigError, match="`max_turns` must be at least 1, but is 0"):
        write_context(["a"], max_turns=0)


def test_most_sources_decide_whether_a_model_is_trained_on_turns():
    contexts = [write_context(["hi"]), write_context(["hi", "hello", "how are you"], max_turns=2)]
    assert has_turns([*contexts, "where are you?"])
    assert not has_turns(["where are you?", "you: are", "me too"])
    assert not has_turns([("you: a", "b"), ("you: a", "b")])
    assert not has_turns([])
