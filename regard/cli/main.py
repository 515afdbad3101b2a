"""`regard VERB …`: every verb is a function; an error for people is one line."""

import logging
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import regard
from regard.cli.analysis import (
    anomalies,
    compare,
    compress,
    embed,
    ladder,
    neighbours,
    probe,
    reduce,
    reproduce,
)
from regard.cli.data import datasets as data
from regard.cli.model import (
    chat,
    demo,
    evaluate,
    explain,
    interpolate,
    predict,
    sample,
    score,
    show,
    train,
)
from regard.cli.model import export as exporting
from regard.cli.model import load as importing
from regard.core.errors import RegardError
from regard.core.logging import log_to


class Verbs(TyperGroup):
    """The verbs, and how each of them may end."""

    def invoke(self, ctx: Any) -> Any:
        """Run a verb; an error for people is one line on standard error and exit code 2."""
        try:
            outcome = super().invoke(ctx)
            sys.stdout.flush()
        except RegardError as error:
            print(f"regard: {error}", file=sys.stderr)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            print("regard: interrupted.", file=sys.stderr)
            raise typer.Exit(130) from None
        except BrokenPipeError:
            # Whoever read our output has had enough, as `head` does; that is no error.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        return outcome


app = typer.Typer(
    name="regard",
    cls=Verbs,
    help="Encoder–decoders with attention: train one on your own pairs, see it think, ship it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("train")(train.train)
app.command("predict")(predict.predict)
app.command("chat")(chat.chat)
app.command("evaluate")(evaluate.evaluate)
app.command("score")(score.score)
app.command("show")(show.show)
app.command("embed")(embed.embed)
app.command("neighbours")(neighbours.neighbours)
app.command("probe")(probe.probe)
app.command("reduce")(reduce.reduce)
app.command("anomalies")(anomalies.anomalies)
app.command("compress")(compress.compress)
app.command("restore")(compress.restore)
app.command("sample")(sample.sample)
app.command("interpolate")(interpolate.interpolate)
app.command("compare")(compare.compare)
app.command("ladder")(ladder.ladder)
app.command("explain")(explain.explain)
app.add_typer(data.app, name="data")
app.add_typer(importing.app, name="import")
app.add_typer(exporting.app, name="export")
app.command("demo")(demo.demo)
app.command("reproduce")(reproduce.reproduce)


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Say more on the way.")] = False,
) -> None:
    """Encoder–decoders with attention: train one on your own pairs, see it think, ship it."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    log_to(handler, logging.DEBUG if verbose else logging.INFO)
    if version:
        print(regard.__version__)
        raise typer.Exit


def main() -> None:
    """Run the command line."""
    app()
