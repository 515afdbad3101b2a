import pytest

from regard.core.errors import ConfigError
from regard.runs.chat import Conversation


@pytest.fixture
def conversation(tiny_run):
    return Conversation.start(tiny_run.predictor, overrides=["search.max_extra=1"], num_turns=2)


def test_reply_depends_on_the_last_turns(conversation):
    _, first = conversation.reply("a b")
    context, _ = conversation.reply("c")
    assert context == f"me: {first.text} you: c"
    assert conversation.turns[:3] == ["a b", first.text, "c"]


def test_undo_removes_a_turn_and_its_reply(conversation):
    conversation.reply("a b")
    assert conversation.undo() == "a b"
    assert conversation.turns == []
    assert conversation.undo() is None


def test_other_tasks_are_refused(sorting_run):
    with pytest.raises(ConfigError, match="The run to chat with.*'generation'.*'sorting'"):
        Conversation.start(sorting_run, overrides=[])
