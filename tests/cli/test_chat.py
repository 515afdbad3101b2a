import builtins
import json
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from regard.cli.model import chat
from regard.core.errors import DataError
from regard.data.example import Example
from regard.data.text.dialogue import write_context
from regard.data.text.readers import read_examples, write_examples
from regard.runs.chat import max_source_tokens, reply_search
from regard.runs.reranking import rerank
from regard.runs.train import train
from regard.search.settings import SearchConfig
from regard.tasks.generation.task import Predictor

PLAIN = ("--turns", 0)
WILD = "search.temperature=3"


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log.jsonl"


@pytest.fixture(scope="module")
def dialogue_run(reverse_files, tmp_path_factory):
    """A model trained on turns with speakers, and with single letters as words."""
    folder = tmp_path_factory.mktemp("dialogue")
    examples = read_examples(Path(reverse_files.train))
    contexts = [
        Example(write_context([one.target, one.source]), one.target) for one in examples[:100]
    ]
    write_examples(folder / "turns.jsonl", contexts)
    files = replace(reverse_files, train=str(folder / "turns.jsonl"))
    return train(files.request(folder / "run", "train.max_steps=30"))


def notices(result):
    """Messages of a command after the first line, which describes the conversation."""
    return result.err.splitlines()[1:]


def contexts(log):
    return [json.loads(line)["source"] for line in log.read_text(encoding="utf-8").splitlines()]


def test_model_that_was_not_trained_on_turns_gets_each_line_as_predict_does(regard, tiny_run, log):
    lines = ["a b c", "d e", "a b c"]
    result = regard("chat", tiny_run.folder, "--log", log, stdin="\n".join(lines))
    assert contexts(log) == lines
    assert result.lines == tiny_run.predictor.translate(lines)
    assert "not trained on turns" in result.err
    assert len(result.err.splitlines()) == 1


def test_model_that_was_trained_on_turns_gets_marked_turns(regard, dialogue_run, log):
    result = regard("chat", dialogue_run.folder, "--log", log, stdin="a\nb\n")
    assert contexts(log) == ["you: a", f"you: a me: {result.lines[0]} you: b"]
    assert "was trained on turns" in result.err
    assert "search.temperature=0.8" in result.err


def test_given_turns_are_marked_for_any_model(regard, tiny_run, log):
    result = regard("chat", tiny_run.folder, "--turns", 1, "--log", log, stdin="a\n")
    assert contexts(log) == ["you: a"]
    assert "search.temperature=0.8" in result.err


def test_every_reply_is_sampled_with_a_different_seed(regard, dialogue_run, log):
    turns = "a b c\nd e\na b c\n"
    result = regard("chat", dialogue_run.folder, *PLAIN, "--log", log, stdin=turns)
    recipe = replace(dialogue_run.predictor.recipe.search, temperature=0.8, top_p=0.9)
    expected = [
        dialogue_run.predictor.predict([turn], search=replace(recipe, seed=seed))[0][0]
        for seed, turn in enumerate(turns.splitlines())
    ]
    assert (result.code, notices(result)) == (0, [])
    assert result.lines == [reply.text for reply in expected]
    rows = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert [row["log_prob"] for row in rows] == pytest.approx([one.log_prob for one in expected])


def test_conversation_is_reproducible_by_its_seed(regard, dialogue_run):
    def replies(seed):
        arguments = (WILD, f"search.seed={seed}")
        return regard("chat", dialogue_run.folder, *PLAIN, *arguments, stdin="a b c\n" * 4).lines

    assert replies(1) == replies(1) != replies(2)
    assert len({*replies(1)}) > 1


def test_temperature_zero_searches_for_the_most_likely_reply(regard, dialogue_run):
    result = regard(
        "chat", dialogue_run.folder, *PLAIN, "search.temperature=0", stdin="a b c\n" * 2
    )
    assert result.lines == dialogue_run.predictor.translate(["a b c"]) * 2
    # The defaults of sampling are not the user's, so there is no warning about them.
    assert notices(result) == []


def test_sampling_settings_of_a_recipe_are_kept():
    sampling = SearchConfig(temperature=1.3, top_k=4)
    assert reply_search(sampling, []) == sampling
    assert reply_search(SearchConfig(), ["search.top_p=0.5"]) == SearchConfig(
        temperature=0.8, top_p=0.5
    )


def test_context_holds_the_last_turns(regard, dialogue_run, log):
    arguments = ("search.max_ratio=0", "search.max_extra=2", "--log", log)
    replies = regard("chat", dialogue_run.folder, *arguments, stdin="a\nb\nc").lines
    assert contexts(log) == [
        "you: a",
        f"you: a me: {replies[0]} you: b",
        f"you: b me: {replies[1]} you: c",
    ]
    regard("chat", dialogue_run.folder, *arguments, "--turns", 1, stdin="a\nb\n")
    assert contexts(log)[3:] == ["you: a", "you: b"]


def test_log_is_a_file_of_pairs(regard, dialogue_run, log):
    replies = regard("chat", dialogue_run.folder, *PLAIN, "--log", log, stdin="a b\nc d\n").lines
    assert [(one.source, one.target) for one in read_examples(log)] == [
        ("a b", replies[0]),
        ("c d", replies[1]),
    ]


def test_reset_clears_the_conversation(regard, dialogue_run, log):
    regard("chat", dialogue_run.folder, "--log", log, stdin="a\nb\n/reset\nc\n")
    assert contexts(log)[-1] == "you: c"


def test_undo_removes_the_last_turn_and_its_reply(regard, dialogue_run, log):
    result = regard("chat", dialogue_run.folder, "--log", log, stdin="a\nb\n/undo\nc\n")
    assert "Removed: b" in result.err.splitlines()
    assert contexts(log)[-1] == f"you: a me: {result.lines[0]} you: c"


def test_undo_of_an_empty_conversation_is_reported(regard, dialogue_run):
    result = regard("chat", dialogue_run.folder, *PLAIN, stdin="/undo\na b\n")
    assert notices(result) == ["There is nothing to remove."]
    assert len(result.lines) == 1


def test_help_and_unknown_commands_name_the_commands(regard, dialogue_run):
    result = regard("chat", dialogue_run.folder, *PLAIN, stdin="/help\n/bye\n")
    assert result.out == ""
    expected = f"{chat.HELP}\n'/bye' is not a command.\n{chat.HELP}"
    assert notices(result) == expected.splitlines()


def test_quit_ends_the_command(regard, dialogue_run):
    result = regard("chat", dialogue_run.folder, *PLAIN, stdin="a b\n/quit\nc d\n")
    assert (result.code, len(result.lines)) == (0, 1)


def test_empty_lines_and_control_characters_are_dropped(regard, dialogue_run, log):
    result = regard(
        "chat", dialogue_run.folder, *PLAIN, "--log", log, stdin="\n \x07\t\na\x07 \x1bb  c\r\n"
    )
    assert contexts(log) == ["a b c"]
    assert len(result.lines) == 1


def test_too_long_turn_is_refused_and_the_conversation_continues(regard, dialogue_run, log):
    short = ("search.max_ratio=0", "search.max_extra=1")
    turns = f"a\n{'b ' * 200}\nc\n"
    result = regard("chat", dialogue_run.folder, *short, "--log", log, stdin=turns)
    message = "A turn must have at most 200 tokens for this model, but has "
    assert [line.startswith(message) for line in result.err.splitlines()].count(True) == 1
    assert result.err.count("Write a shorter turn.\n") == 1
    assert result.code == 0
    assert contexts(log) == ["you: a", f"you: a me: {result.lines[0]} you: c"]


def test_oldest_turns_are_dropped_from_a_too_long_context(regard, dialogue_run, log):
    short = ("search.max_ratio=0", "search.max_extra=1")
    long = " ".join("b" * 150)
    result = regard("chat", dialogue_run.folder, *short, "--log", log, stdin=f"{long}\n{long}\n")
    assert contexts(log) == [f"you: {long}", f"me: {result.lines[0]} you: {long}"]


def test_learned_positions_limit_the_source(dialogue_run):
    recipe = dialogue_run.predictor.recipe
    assert max_source_tokens(recipe) == recipe.data.batch.max_length == 200

    class Encoder:
        positions, max_length = "learned", 64

    class Model:
        encoder = Encoder

    class Limited:
        data, model = recipe.data, Model

    assert max_source_tokens(Limited) == 64


def test_model_error_is_printed_and_the_conversation_continues(
    regard, dialogue_run, log, monkeypatch
):
    predict = Predictor.predict

    def fail_at_b(self, sources, **options):
        if sources[0].endswith("b"):
            raise DataError("Not b.")
        return predict(self, sources, **options)

    monkeypatch.setattr(Predictor, "predict", fail_at_b)
    result = regard("chat", dialogue_run.folder, "--log", log, stdin="a\nb\nc\n")
    assert "Not b." in result.err.splitlines()
    assert contexts(log) == ["you: a", f"you: a me: {result.lines[0]} you: c"]


def test_interrupted_turn_is_removed(regard, dialogue_run, log, monkeypatch):
    predict = Predictor.predict

    def press(self, sources, **options):
        if sources[0].endswith("b"):
            signal.raise_signal(signal.SIGINT)
        return predict(self, sources, **options)

    monkeypatch.setattr(Predictor, "predict", press)
    # Tests started in the background ignore the signal by default.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        result = regard("chat", dialogue_run.folder, "--log", log, stdin="a\nb\nc\n")
    finally:
        signal.signal(signal.SIGINT, before)
    assert "Stopped. Your last turn is removed." in result.err.splitlines()
    assert result.code == 0
    assert contexts(log) == ["you: a", f"you: a me: {result.lines[0]} you: c"]


def test_replies_can_be_reranked(regard, dialogue_run, tiny_run_without_attention):
    arguments = (WILD, "search.seed=5", "search.beams=12")
    reranked = ("--rerank", tiny_run_without_attention.folder, "--rerank-weight", 3)
    result = regard("chat", dialogue_run.folder, *PLAIN, *arguments, *reranked, stdin="a b c\n")
    search = replace(
        dialogue_run.predictor.recipe.search, temperature=3.0, top_p=0.9, seed=5, beams=12
    )
    ((best,),) = rerank(
        dialogue_run.predictor,
        tiny_run_without_attention.predictor,
        ["a b c"],
        weight=3.0,
        search=search,
    )
    assert result.lines == [best.text]
    assert (
        result.lines
        != regard("chat", dialogue_run.folder, *PLAIN, *arguments, stdin="a b c\n").lines
    )


def test_terminal_prompts_until_the_end_of_input(monkeypatch, capsys):
    lines = iter(["a b", UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), "c", EOFError()])
    prompts = []

    def read(prompt):
        prompts.append(prompt)
        line = next(lines)
        if isinstance(line, Exception):
            raise line
        return line

    monkeypatch.setattr(builtins, "input", read)
    assert list(chat._prompt()) == ["a b", "c"]
    assert prompts == ["> "] * 4
    assert capsys.readouterr() == ("\n", "That is not UTF-8 text. Type it again.\n")


def test_chat_refuses_other_tasks(refused, sorting_run, monkeypatch):
    monkeypatch.setattr("regard.runs.folder.load", lambda run, device: sorting_run)
    monkeypatch.setattr("regard.runs.chat.trained_on_turns", lambda run: False)
    assert refused("chat", "runs/sorter", stdin="a\n") == (
        "The run to chat with must be a run for the task 'generation', an encoder–decoder, but is "
        "one for 'sorting'."
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--turns", "-1"), "`turns` must be at least 0, but is -1."),
        (("search.tempreature=1",), "`search.tempreature` is not a setting."),
        (("train.seed=1",), "`train.seed` cannot be changed once a model is trained."),
        (("--log", "/"), "/ cannot be written: Is a directory."),
    ],
)
def test_invalid_options_are_refused_first(refused, dialogue_run, arguments, message):
    assert refused("chat", dialogue_run.folder, *arguments, stdin="a\n").startswith(message)
