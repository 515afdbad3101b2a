"""`regard chat`: conversation with a model."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from regard.cli.arguments import search_overrides
from regard.cli.options import (
    Beam,
    Device,
    Rerank,
    RerankWeight,
    Run,
    SearchOverrides,
    SearchSeed,
)
from regard.core.errors import DataError, RegardError
from regard.data.text.dialogue import TURNS, clean_turn

if TYPE_CHECKING:
    from regard.runs.chat import Conversation

HELP = """\
/reset  clear the conversation
/undo   remove your last turn and the reply
/help   show this help
/quit   end, like Ctrl-D; Ctrl-C stops a reply"""


def chat(
    run: Run,
    settings: SearchOverrides = None,
    beam: Beam = None,
    turns: Annotated[
        int | None,
        Option(
            help="Turns in the context; 0 = the last, without speaker. "
            f"{TURNS} for models trained on turns, else 0.",
        ),
    ] = None,
    rerank: Rerank = None,
    rerank_weight: RerankWeight = None,
    log: Annotated[
        Path | None, Option(help="A file to which replies are appended as JSON lines.")
    ] = None,
    seed: SearchSeed = None,
    device: Device = "auto",
) -> None:
    """Chat with a model; /help lists the commands.

    A model trained on turns with speakers gets the last turns. Its replies are sampled, with a
    different seed per turn, so that repeating a turn gives another reply. The same search.seed
    reproduces the conversation. With search.temperature=0, a search finds the most likely reply.
    Any other model, such as a translation model, gets each line alone, as in `regard predict`.
    Without a terminal, every line of standard input is a turn.
    """
    from regard.core.files import append_json_line
    from regard.core.terminal import clean
    from regard.runs.chat import Conversation, trained_on_turns
    from regard.runs.folder import load

    overrides = search_overrides(settings, beam=beam, seed=seed)
    conversation = Conversation.start(
        load(run, device),
        overrides=overrides,
        is_dialogue=trained_on_turns(run),
        num_turns=turns,
        reranker=load(rerank, device) if rerank else None,
        rerank_weight=rerank_weight,
    )
    if log is not None:
        _check_log(log)
    _print_notice(conversation.describe())
    for line in _read_turns():
        if line == "/quit":
            return
        if line.startswith("/"):
            _print_notice(_run_command(line, conversation))
            continue
        try:
            context, reply = conversation.reply(line)
        except KeyboardInterrupt:
            _print_notice("Stopped. Your last turn is removed.")
        except RegardError as error:
            _print_notice(str(error))
        else:
            print(clean(reply.text), flush=True)
            if log is not None:
                row = {"source": context, "target": reply.text, "log_prob": reply.log_prob}
                append_json_line(log, row)


def _run_command(command: str, conversation: "Conversation") -> str:
    """Run a command that starts with a slash, and return its message."""
    if command == "/reset":
        conversation.turns.clear()
        return "Conversation cleared."
    if command == "/undo":
        removed = conversation.undo()
        return "There is nothing to remove." if removed is None else f"Removed: {removed}"
    return HELP if command == "/help" else f"'{command}' is not a command.\n{HELP}"


def _check_log(path: Path) -> None:
    """Raise a `DataError` before the conversation starts if the log cannot be written."""
    try:
        path.open("a").close()
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}.") from None


def _read_turns() -> Iterator[str]:
    """Yield the non-empty turns of a person, cleaned."""
    from regard.data.text.lines import STANDARD_INPUT, read_lines

    lines = _prompt() if sys.stdin.isatty() else read_lines(STANDARD_INPUT)
    return filter(None, map(clean_turn, lines))


def _prompt() -> Iterator[str]:
    """Prompt for lines at a terminal until the end of input."""
    with suppress(ImportError):  # Without readline, lines cannot be edited.
        import readline  # noqa: F401
    while True:
        try:
            yield input("> ")
        except EOFError:
            print()
            return
        except UnicodeDecodeError:
            _print_notice("That is not UTF-8 text. Type it again.")


def _print_notice(message: str) -> None:
    """Print a message that is not a reply to standard error."""
    print(message, file=sys.stderr, flush=True)
