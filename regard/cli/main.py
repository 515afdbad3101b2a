"""`regard COMMAND …`: table of commands, imported on first use, with error handling."""

import gc
import logging
import sys
from typing import Annotated, Any

import typer

import regard
from regard.cli.boundary import boundary, prepare_streams
from regard.cli.commands import Command, Group, add_common_options
from regard.core.logging import log_to
from regard.core.tables import resolve

HELP = "Train, inspect and compare encoder–decoder models with attention."

PANELS: dict[str, dict[str, str]] = {
    "Model": {
        "train": "regard.cli.model.train:train",
        "predict": "regard.cli.model.predict:predict",
        "chat": "regard.cli.model.chat:chat",
        "serve": "regard.cli.model.serve:serve",
        "watch": "regard.cli.model.watch:watch",
        "evaluate": "regard.cli.model.evaluate:evaluate",
        "score": "regard.cli.model.evaluate:score",
        "show": "regard.cli.model.show:show",
        "report": "regard.cli.model.report:report",
        "check": "regard.cli.model.check:check",
        "sample": "regard.cli.model.latents:sample",
        "interpolate": "regard.cli.model.latents:interpolate",
        "recipes": "regard.cli.model.recipes:recipes",
        "explain": "regard.cli.model.explain:explain",
        "import": "regard.cli.model.convert:import_app",
        "export": "regard.cli.model.convert:export_app",
        "demo": "regard.cli.model.demo:demo",
    },
    "Analysis": {
        "embed": "regard.cli.analysis.embed:embed",
        "neighbours": "regard.cli.analysis.neighbours:neighbours",
        "align": "regard.cli.analysis.align:align",
        "probe": "regard.cli.analysis.probe:probe",
        "reduce": "regard.cli.analysis.reduce:reduce",
        "anomalies": "regard.cli.analysis.anomalies:anomalies",
        "compress": "regard.cli.analysis.compress:compress",
        "restore": "regard.cli.analysis.compress:restore",
        "compare": "regard.cli.analysis.compare:compare",
        "plot": "regard.cli.analysis.plot:plot",
        "ladder": "regard.cli.analysis.ladder:ladder",
        "reproduce": "regard.cli.analysis.reproduce:reproduce",
        "bench": "regard.cli.analysis.bench:app",
    },
    "Data": {"data": "regard.cli.data.datasets:app"},
}
"""Commands by heading of the help, and the functions that define them."""

COMMANDS = {name: dotted for panel in PANELS.values() for name, dotted in panel.items()}


class Commands(Group):
    """Group of commands; only the module of the invoked command is imported."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command: a function, or an application with subcommands."""
        if cmd_name not in COMMANDS:
            return None
        command = resolve(COMMANDS[cmd_name])
        single = typer.Typer(rich_markup_mode=None)
        if isinstance(command, typer.Typer):
            single.add_typer(command, name=cmd_name)
        else:
            single.command(cmd_name, cls=Command)(command)
        return add_common_options(typer.main.get_group(single).commands[cmd_name])

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the help of all commands under their headings."""
        for panel, names in PANELS.items():
            with formatter.section(f"{panel} commands"):
                self.write_commands(ctx, formatter, list(names))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options before the command."""
        with boundary():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        with boundary():
            return super().invoke(ctx)


app = typer.Typer(
    name="regard",
    cls=Commands,
    help=HELP,
    context_settings={"help_option_names": ["--help", "-h"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log debug messages.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print no notices and no progress.")
    ] = False,
) -> None:
    """Log to standard error; print the version if requested."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    level = logging.WARNING if quiet else logging.DEBUG if verbose else logging.INFO
    log_to(handler, level)
    if version:
        print(regard.__version__)
        raise typer.Exit


def main() -> None:
    """Run the command line."""
    # Imports create hundreds of thousands of permanent objects; collect garbage less often.
    gc.set_threshold(100_000)
    prepare_streams()
    app(prog_name="regard")
