"""Classes of commands and groups of commands: one grammar, complete help, common options."""

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from regard.cli.arguments import is_override, overrides_last
from regard.cli.examples import EXAMPLES
from regard.cli.options import Quiet, Threads
from regard.core.errors import ConfigError
from regard.core.tables import did_you_mean


class Command(TyperCommand):
    """Command whose overrides may stand anywhere among its arguments."""

    allow_extra_args = True  # `parse_args` refuses them with a message of its own.

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments and options, overrides last; refuse arguments that are left over."""
        params: list[Any] = self.params
        valued = {name for param in params if _takes_value(param) for name in param.opts}
        rest: list[str] = super().parse_args(ctx, overrides_last(args, options_with_value=valued))
        if rest and not ctx.resilient_parsing:
            raise ConfigError(_surplus(ctx, rest))
        return rest

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments as the help describes them."""
        formatter.write_usage(ctx.command_path, self.usage())

    def usage(self) -> str:
        """Return the arguments in their order."""
        return " ".join([*map(argument_name, _arguments(self)), "[OPTIONS]"])

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the help of arguments and options, and an example."""
        if arguments := _arguments(self):
            with formatter.section("Arguments"):
                formatter.write_dl([(argument_name(param), param.help) for param in arguments])
        params: list[Any] = self.get_params(ctx)
        options = [param.get_help_record(ctx) for param in params if _is_option(param)]
        with formatter.section("Options"):
            formatter.write_dl([record for record in options if record is not None])
        if example := find_example(ctx):
            with formatter.section("Example"):
                formatter.write_text(example)


class Group(TyperGroup):
    """Group of commands whose help is complete; without a command, it prints its help."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command with the options that all commands have."""
        command = super().get_command(ctx, cmd_name)
        return command and add_common_options(command)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse options; print the help if there are no arguments."""
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            raise typer.Exit
        rest: list[str] = super().parse_args(ctx, args)
        return rest

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command by the first argument, or raise a `ConfigError`."""
        name = args[0]
        if not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            hint = did_you_mean(name, self.list_commands(ctx))
            raise ConfigError(
                f"'{name}' is not a command of `{ctx.command_path}`."
                f"{hint or f' `{ctx.command_path} --help` lists the commands.'}"
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the help of all commands."""
        with formatter.section("Commands"):
            self.write_commands(ctx, formatter, self.list_commands(ctx))

    def write_commands(self, ctx: Any, formatter: Any, names: list[str]) -> None:
        """Write the first sentence of the help of each command, without cutting it."""
        commands = [(name, self.get_command(ctx, name)) for name in names]
        formatter.write_dl([(name, short_help(command)) for name, command in commands])


def _surplus(ctx: Any, arguments: list[str]) -> str:
    """Return the message for arguments that a command does not take."""
    first = arguments[0]
    if is_override(first):
        return f"`{ctx.command_path}` takes no overrides, but got '{first}'. Leave it out."
    quoted = ", ".join(f"'{argument}'" for argument in arguments)
    return (
        f"`{ctx.command_path}` got too many arguments: {quoted}. Put a sentence in quotes. "
        f"Usage: {ctx.command_path} {ctx.command.usage()}."
    )


def short_help(command: Any) -> str:
    """Return the first paragraph of the help of a command."""
    return " ".join((command.help or "").partition("\n\n")[0].split())


def find_example(ctx: Any) -> str:
    """Return the example of a command; an empty string if it has none."""
    return EXAMPLES.get(ctx.command_path.removeprefix(ctx.find_root().info_name).strip(), "")


def add_common_options(command: Any) -> Any:
    """Add `--quiet` to a command, and `--threads` if it computes on a device."""
    if isinstance(command, TyperGroup):
        return command
    names = {param.name for param in command.params}
    for param in _COMMON:
        is_wanted = param.name != "threads" or "device" in names
        if is_wanted and param.name not in names:
            command.params.append(param)
    return command


def _common(threads: Threads = None, quiet: Quiet = False) -> None:
    """Declare the options that `add_common_options` adds."""


def _common_options() -> list[Any]:
    app = typer.Typer(add_completion=False)
    app.command()(_common)
    return list(typer.main.get_command(app).params)


_COMMON = _common_options()


def _arguments(command: Any) -> list[Any]:
    return [param for param in command.params if not _is_option(param)]


def _is_option(param: Any) -> bool:
    return str(param.param_type_name) == "option"


def _takes_value(param: Any) -> bool:
    return _is_option(param) and not (param.is_flag or param.count)


def argument_name(param: Any) -> str:
    """Return the name of an argument in the help."""
    return str(param.metavar or param.name.upper())
