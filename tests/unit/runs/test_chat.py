import pytest

from regard.core.errors import ConfigError
from regard.core.files import read_json, write_json
from regard.data.example import Example
from regard.data.text.readers import write_examples
from regard.runs.chat import Conversation, trained_on_turns
from regard.runs.folder import TEST
from regard.runs.saved.config import CONFIG


@pytest.fixture
def conversation(tiny_run):
    overrides = ["search.max_extra=1"]
    return Conversation.start(
        tiny_run.predictor, overrides=overrides, is_dialogue=True, num_turns=2
    )


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
        Conversation.start(sorting_run, overrides=[], is_dialogue=False)


def test_training_records_whether_sources_are_turns(tiny_run):
    assert read_json(tiny_run.folder / CONFIG)["about"]["has_turns"] is False


def test_test_set_of_an_older_run_shows_whether_it_was_trained_on_turns(tiny_folder):
    config = read_json(tiny_folder / CONFIG)
    del config["about"]["has_turns"]
    write_json(tiny_folder / CONFIG, config)
    assert not trained_on_turns(tiny_folder)
    write_examples(tiny_folder / TEST, [Example("you: hi", "ho"), Example("me: hi you: b", "c")])
    assert trained_on_turns(f"{tiny_folder},elsewhere")
    (tiny_folder / TEST).unlink()
    assert not trained_on_turns(tiny_folder)
