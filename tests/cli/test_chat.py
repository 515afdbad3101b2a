import builtins
import json
import signal
from dataclasses import replace

import pytest

from regard.cli.model import chat
from regard.core.errors import DataError
from regard.data.text.readers import read_examples
from regard.runs.chat import max_source_tokens, reply_search
from regard.runs.reranking import rerank
from regard.search.settings import SearchConfig
from regard.tasks.generation.task import Predictor

PLAIN = ("--turns", 0)
WILD = "search.temperature=3"


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log.jsonl"


def contexts(log):
    return [json.loads(line)["source"] for line in log.read_text(encoding="utf-8").splitlines()]


def test_every_turn_is_drawn_with_a_seed_of_its_own(regard, tiny_run, log):
    talk = "a b c\nd e\na b c\n"
    answer = regard("chat", tiny_run.folder, *PLAIN, "--log", log, stdin=talk)
    recipe = replace(tiny_run.predictor.recipe.search, temperature=0.8, top_p=0.9)
    expected = [
        tiny_run.predictor.predict([said], search=replace(recipe, seed=seed))[0][0]
        for seed, said in enumerate(talk.splitlines())
    ]
    assert (answer.code, answer.err) == (0, "")
    assert answer.lines == [reply.text for reply in expected]
    rows = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert [row["log_prob"] for row in rows] == pytest.approx([one.log_prob for one in expected])


def test_conversation_comes_again_from_the_same_seed_only(regard, tiny_run):
    def talk(seed):
        words = (WILD, f"search.seed={seed}")
        return regard("chat", tiny_run.folder, *PLAIN, *words, stdin="a b c\n" * 4).lines

    assert talk(1) == talk(1) != talk(2)
    assert len({*talk(1)}) > 1


def test_without_temperature_the_likeliest_reply_is_searched_for(regard, tiny_run):
    answer = regard("chat", tiny_run.folder, *PLAIN, "search.temperature=0", stdin="a b c\n" * 2)
    assert answer.lines == tiny_run.predictor.translate(["a b c"]) * 2
    # Drawing among the likeliest tokens is the command's own idea: nobody is told of it.
    assert answer.err == ""


def test_way_of_drawing_that_a_recipe_has_is_kept():
    drawn = SearchConfig(temperature=1.3, top_k=4)
    assert reply_search(drawn, []) == drawn
    assert reply_search(SearchConfig(), ["search.top_p=0.5"]) == SearchConfig(
        temperature=0.8, top_p=0.5
    )


def test_model_sees_the_last_turns(regard, tiny_run, log):
    words = ("search.max_ratio=0", "search.max_extra=2", "--log", log)
    said = ["a", "b", "c"]
    replies = regard("chat", tiny_run.folder, *words, stdin="\n".join(said)).lines
    assert contexts(log) == [
        "you: a",
        f"you: a me: {replies[0]} you: b",
        f"you: b me: {replies[1]} you: c",
    ]
    regard("chat", tiny_run.folder, *words, "--turns", 1, stdin="a\nb\n")
    assert contexts(log)[3:] == ["you: a", "you: b"]


def test_log_is_a_file_of_pairs(regard, tiny_run, log):
    replies = regard("chat", tiny_run.folder, *PLAIN, "--log", log, stdin="a b\nc d\n").lines
    assert [(one.source, one.target) for one in read_examples(log)] == [
        ("a b", replies[0]),
        ("c d", replies[1]),
    ]


def test_reset_forgets_everything(regard, tiny_run, log):
    regard("chat", tiny_run.folder, "--log", log, stdin="a\nb\n/reset\nc\n")
    assert contexts(log)[-1] == "you: c"


def test_undo_takes_the_last_exchange_back(regard, tiny_run, log):
    answer = regard("chat", tiny_run.folder, "--log", log, stdin="a\nb\n/undo\nc\n")
    assert "Taken back: b" in answer.err.splitlines()
    assert contexts(log)[-1] == f"you: a me: {answer.lines[0]} you: c"


def test_nothing_can_be_taken_back_before_anything_is_said(regard, tiny_run):
    answer = regard("chat", tiny_run.folder, *PLAIN, stdin="/undo\na b\n")
    assert answer.err == "There is nothing to take back.\n"
    assert len(answer.lines) == 1


def test_help_and_unknown_commands_name_the_commands(regard, tiny_run):
    answer = regard("chat", tiny_run.folder, *PLAIN, stdin="/help\n/bye\n")
    assert answer.out == ""
    assert answer.err == f"{chat.HELP}\n'/bye' is no command.\n{chat.HELP}\n"


def test_quit_ends(regard, tiny_run):
    answer = regard("chat", tiny_run.folder, *PLAIN, stdin="a b\n/quit\nc d\n")
    assert (answer.code, len(answer.lines)) == (0, 1)


def test_empty_lines_are_no_turns_and_control_characters_go(regard, tiny_run, log):
    answer = regard(
        "chat", tiny_run.folder, *PLAIN, "--log", log, stdin="\n \x07\t\na\x07 \x1bb  c\r\n"
    )
    assert contexts(log) == ["a b c"]
    assert len(answer.lines) == 1


def test_turn_that_is_too_long_is_told_and_the_conversation_goes_on(regard, tiny_run, log):
    short = ("search.max_ratio=0", "search.max_extra=1")
    talk = f"a\n{'b ' * 200}\nc\n"
    answer = regard("chat", tiny_run.folder, *short, "--log", log, stdin=talk)
    message = "A turn must have at most 200 tokens for this model, but has "
    assert [line.startswith(message) for line in answer.err.splitlines()].count(True) == 1
    assert answer.err.count("Say it in fewer words.\n") == 1
    assert answer.code == 0
    assert contexts(log) == ["you: a", f"you: a me: {answer.lines[0]} you: c"]


def test_oldest_turns_are_left_out_where_all_are_too_many(regard, tiny_run, log):
    short = ("search.max_ratio=0", "search.max_extra=1")
    long = " ".join("b" * 150)
    answer = regard("chat", tiny_run.folder, *short, "--log", log, stdin=f"{long}\n{long}\n")
    assert contexts(log) == [f"you: {long}", f"me: {answer.lines[0]} you: {long}"]


def test_learned_positions_limit_what_is_read(tiny_run):
    recipe = tiny_run.predictor.recipe
    assert max_source_tokens(recipe) == recipe.data.batch.max_length == 200

    class Encoder:
        positions, max_length = "learned", 64

    class Model:
        encoder = Encoder

    class Limited:
        data, model = recipe.data, Model

    assert max_source_tokens(Limited) == 64


def test_error_of_the_model_is_told_and_the_conversation_goes_on(
    regard, tiny_run, log, monkeypatch
):
    predict = Predictor.predict

    def fail_at_b(self, sources, **words):
        if sources[0].endswith("b"):
            raise DataError("Not b.")
        return predict(self, sources, **words)

    monkeypatch.setattr(Predictor, "predict", fail_at_b)
    answer = regard("chat", tiny_run.folder, "--log", log, stdin="a\nb\nc\n")
    assert "Not b." in answer.err.splitlines()
    assert contexts(log) == ["you: a", f"you: a me: {answer.lines[0]} you: c"]


def test_interrupted_reply_is_forgotten(regard, tiny_run, log, monkeypatch):
    predict = Predictor.predict

    def press(self, sources, **words):
        if sources[0].endswith("b"):
            signal.raise_signal(signal.SIGINT)
        return predict(self, sources, **words)

    monkeypatch.setattr(Predictor, "predict", press)
    # A shell that starts the tests in the background has them ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        answer = regard("chat", tiny_run.folder, "--log", log, stdin="a\nb\nc\n")
    finally:
        signal.signal(signal.SIGINT, before)
    assert "Stopped. What you said last is forgotten." in answer.err.splitlines()
    assert answer.code == 0
    assert contexts(log) == ["you: a", f"you: a me: {answer.lines[0]} you: c"]


def test_replies_can_be_reranked(regard, tiny_run, tiny_run_without_attention):
    words = (WILD, "search.seed=5", "search.beams=12")
    reranked = ("--rerank", tiny_run_without_attention.folder, "--rerank-weight", 3)
    answer = regard("chat", tiny_run.folder, *PLAIN, *words, *reranked, stdin="a b c\n")
    search = replace(tiny_run.predictor.recipe.search, temperature=3.0, top_p=0.9, seed=5, beams=12)
    ((best,),) = rerank(
        tiny_run.predictor,
        tiny_run_without_attention.predictor,
        ["a b c"],
        weight=3.0,
        search=search,
    )
    assert answer.lines == [best.text]
    assert answer.lines != regard("chat", tiny_run.folder, *PLAIN, *words, stdin="a b c\n").lines


def test_person_at_a_terminal_is_asked_until_the_end(monkeypatch, capsys):
    lines = iter(["a b", UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), "c", EOFError()])
    marks = []

    def read(mark):
        marks.append(mark)
        line = next(lines)
        if isinstance(line, Exception):
            raise line
        return line

    monkeypatch.setattr(builtins, "input", read)
    assert list(chat._ask()) == ["a b", "c"]
    assert marks == ["> "] * 4
    assert capsys.readouterr() == ("\n", "That is not UTF-8 text. Say it again.\n")


def test_chat_is_for_encoder_decoders(refused, sorting_run, monkeypatch):
    monkeypatch.setattr("regard.runs.folder.load", lambda run, device: sorting_run)
    assert refused("chat", "runs/sorter", stdin="a\n") == (
        "What you chat with must be a run for the task 'generation', an encoder–decoder, but is "
        "one for 'sorting'."
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--turns", "-1"), "`turns` must be at least 0, but is -1."),
        (("search.tempreature=1",), "`search.tempreature` is not a setting."),
        (("train.seed=1",), "`train.seed` cannot be changed once a model is trained."),
        (("--log", "/"), "/ cannot be written: Is a directory."),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_said(refused, tiny_run, words, message):
    assert refused("chat", tiny_run.folder, *words, stdin="a\n").startswith(message)
