"""`regard chat`: talk with a model in turns."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from regard.cli.options import Device, Rerank, RerankWeight, Run, SearchOverrides
from regard.core.errors import DataError, RegardError
from regard.data.text.dialogue import TURNS, clean_turn

if TYPE_CHECKING:
    from regard.runs.chat import Conversation

HELP = """\
/reset  forget what was said
/undo   take the last exchange back
/help   show this
/quit   end, as Ctrl-D does; Ctrl-C stops a reply"""


def chat(
    run: Run,
    settings: SearchOverrides = None,
    turns: Annotated[int, Option(help="Turns in the context; 0 = your last, unmarked.")] = TURNS,
    rerank: Rerank = None,
    rerank_weight: RerankWeight = None,
    log: Annotated[
        Path | None, Option(help="A file to append to, a JSON object per reply.")
    ] = None,
    device: Device = "auto",
) -> None:
    """Talk with a model; /help says what else can be typed.

    Replies are drawn, each turn with a seed of its own: said again, the same is answered
    otherwise. From the same search.seed the same conversation comes again. With
    search.temperature=0 the likeliest reply is searched for. Without a terminal, every line of
    standard input is a turn.
    """
    from regard.core.files import append_json_line
    from regard.plots.inputs import clean
    from regard.runs.chat import Conversation
    from regard.runs.folder import load

    conversation = Conversation.start(
        load(run, device),
        overrides=settings or [],
        num_turns=turns,
        reranker=load(rerank, device) if rerank else None,
        rerank_weight=rerank_weight,
    )
    if log is not None:
        _check_log(log)
    for line in _read_turns():
        if line == "/quit":
            return
        if line.startswith("/"):
            _tell(_obey(line, conversation))
            continue
        try:
            context, reply = conversation.reply(line)
        except KeyboardInterrupt:
            _tell("Stopped. What you said last is forgotten.")
        except RegardError as error:
            _tell(str(error))
        else:
            print(clean(reply.text), flush=True)
            if log is not None:
                row = {"source": context, "target": reply.text, "log_prob": reply.log_prob}
                append_json_line(log, row)


def _obey(command: str, conversation: "Conversation") -> str:
    """Run a command that begins with a slash, and return what to print."""
    if command == "/reset":
        conversation.turns.clear()
        return "Forgotten."
    if command == "/undo":
        removed = conversation.undo()
        return "There is nothing to take back." if removed is None else f"Taken back: {removed}"
    return HELP if command == "/help" else f"'{command}' is no command.\n{HELP}"


def _check_log(path: Path) -> None:
    """Raise before anything is said if it cannot be written down."""
    try:
        path.open("a").close()
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}.") from None


def _read_turns() -> Iterator[str]:
    """Read what a person says, cleaned; nothing is asked for again."""
    from regard.data.text.lines import STANDARD_INPUT, read_lines

    lines = _ask() if sys.stdin.isatty() else read_lines(STANDARD_INPUT)
    return filter(None, map(clean_turn, lines))


def _ask() -> Iterator[str]:
    """Ask at a terminal until the person ends."""
    with suppress(ImportError):  # Where there is none, lines cannot be edited.
        import readline  # noqa: F401
    while True:
        try:
            yield input("> ")
        except EOFError:
            print()
            return
        except UnicodeDecodeError:
            _tell("That is not UTF-8 text. Say it again.")


def _tell(message: str) -> None:
    """Say something that is no reply."""
    print(message, file=sys.stderr, flush=True)
