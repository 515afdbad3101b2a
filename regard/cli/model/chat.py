"""`regard chat`: talk with a model in turns."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.options import Device, Rerank, RerankWeight, Run
from regard.core.errors import DataError, RegardError
from regard.data.text.dialogue import TURNS, clean_turn, write_context

if TYPE_CHECKING:
    from regard.runs.reranking import Answers
    from regard.search.settings import SearchConfig
    from regard.tasks.generation.recipe import Recipe
    from regard.tasks.generation.task import Predictor
    from regard.tasks.prediction import Prediction

TEMPERATURE, TOP_P = 0.8, 0.9
"""How replies are drawn where the recipe would search: the likeliest reply is often the dullest."""

HELP = """\
/reset  forget what was said
/undo   take the last exchange back
/help   show this
/quit   end, as Ctrl-D does; Ctrl-C stops a reply"""


def chat(
    run: Run,
    settings: Annotated[
        list[str] | None,
        typer.Argument(metavar="[search.key=value ...]", help="Settings of the search."),
    ] = None,
    turns: Annotated[
        int, typer.Option(help="Turns the model sees, yours included; 0: your last, unmarked.")
    ] = TURNS,
    rerank: Rerank = None,
    rerank_weight: RerankWeight = None,
    log: Annotated[
        Path | None, typer.Option(help="A file to add to: a JSON object for each reply.")
    ] = None,
    device: Device = "auto",
) -> None:
    """Talk with a model; /help says what else can be typed.

    Replies are drawn, each turn with a seed of its own: said again, the same is answered
    otherwise. From the same search.seed the same conversation comes again. With
    search.temperature=0 the likeliest reply is searched for. Without a terminal, every line of
    standard input is a turn.
    """
    from regard.core.config import at_least
    from regard.core.files import append_json_line
    from regard.plots.inputs import clean
    from regard.runs.folder import load
    from regard.runs.reranking import answering, check_writer

    at_least("turns", turns, 0)
    task = load(run, device)
    check_writer(task, "What you chat with")
    answers = answering(task, load(rerank, device) if rerank else None, rerank_weight)
    search = _how_to_reply(task.recipe.search, settings or [])
    if log is not None:
        _check_log(log)
    talk = Conversation(task, answers, search, num_turns=turns, max_tokens=_limit(task.recipe))
    for line in _read_turns():
        if line.startswith("/"):
            if line == "/quit":
                return
            _tell(talk.obey(line))
            continue
        try:
            context, reply = talk.say(line)
        except KeyboardInterrupt:
            _tell("Stopped. What you said last is forgotten.")
        except RegardError as error:
            _tell(str(error))
        else:
            print(clean(reply.text), flush=True)
            if log is not None:
                row = {"source": context, "target": reply.text, "log_prob": reply.log_prob}
                append_json_line(log, row)


@dataclass
class Conversation:
    """What a person and a model have said to each other, and how it goes on."""

    task: "Predictor"
    """The model."""
    answers: "Answers"
    """How it answers."""
    search: "SearchConfig"
    """How the first reply is searched for or drawn; the seed of each further one is one higher."""
    num_turns: int
    """The most turns that a reply is written from; 0 = what was said last, without its speaker."""
    max_tokens: int
    """The most tokens that the model reads."""
    turns: list[str] = field(default_factory=list)
    """What was said in turns; the person began."""
    num_asked: int = 0
    """Replies asked for until now, those included that were taken back."""

    def say(self, turn: str) -> tuple[str, "Prediction"]:
        """Say something; return the context that the model saw, and its reply.

        Where there is an error or an interruption, nothing was said.
        """
        context = self._write([*self.turns, turn])
        search = replace(self.search, seed=self.search.seed + self.num_asked)
        self.num_asked += 1
        ((reply,),) = self.answers([context], search=search)
        self.turns += [turn, reply.text]
        return context, reply

    def obey(self, command: str) -> str:
        """Do what a command asks, and return what there is to say about it."""
        if command == "/reset":
            self.turns.clear()
            return "Forgotten."
        if command == "/undo":
            taken = self.turns[-2:-1]
            del self.turns[-2:]
            return f"Taken back: {taken[0]}" if taken else "There is nothing to take back."
        return HELP if command == "/help" else f"'{command}' is no command.\n{HELP}"

    def _write(self, turns: list[str]) -> str:
        """Write the context, the oldest turns left out as far as the model cannot read them."""
        contexts = [write_context(turns, most=most) for most in range(self.num_turns, 0, -1)]
        contexts = contexts or turns[-1:]
        lengths = [len(ids) for ids in self.task.source.read_all(contexts)]
        for context, length in zip(contexts, lengths, strict=True):
            if length <= self.max_tokens:
                return context
        raise DataError(
            f"A turn must have at most {self.max_tokens} tokens for this model, but has "
            f"{lengths[-1]}. Say it in fewer words."
        )


def _how_to_reply(search: "SearchConfig", settings: list[str]) -> "SearchConfig":
    """Return the recipe's search as a person changes it; if it does not draw, replies still are."""
    from regard.search.settings import change_search

    drawn = search if search.is_drawn else replace(search, temperature=TEMPERATURE, top_p=TOP_P)
    changed = change_search(drawn, settings)
    if not changed.is_drawn:
        changed = change_search(search, settings)
    changed.warn_of_idle()
    return changed


def _limit(recipe: "Recipe") -> int:
    """Return how many tokens a model reads: what it has positions for, and what it has learned."""
    from regard.models.encoders import max_tokens

    learned = recipe.data.batch.max_length
    return min(learned, max_tokens(recipe.model.encoder) or learned)


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
