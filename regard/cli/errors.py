"""Usage errors and lack of memory as one line."""

import re
from typing import Any

import typer

from regard.cli.commands import argument_name, find_example
from regard.core.tables import did_you_mean

# A base class of typer's public error, which is that of click in any version of both.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]

_NUMBER = re.compile(r"valid (integer|number|float)\b")
_NUMBERS = {"integer": "an integer", "number": "a number", "float": "a number"}


OUT_OF_MEMORY = (
    "there is not enough memory. Use a smaller model, smaller batches (`data.batch.max_tokens`), "
    "fewer beams (`search.beams`) or shorter inputs."
)


def is_out_of_memory(error: Exception) -> bool:
    """Return whether memory could not be allocated; torch has no class of its own for it."""
    text = str(error)
    return isinstance(error, MemoryError) or "not enough memory" in text or "out of memory" in text


def usage_message(error: Any) -> str:
    """Return a usage error as one line: what is wrong, and what to do."""
    option, param = getattr(error, "option_name", None), getattr(error, "param", None)
    if option and error.ctx and option not in (names := _option_names(error.ctx)):
        command = error.ctx.command_path
        hint = did_you_mean(option, names) or f" `{command} --help` lists the options."
        return f"`{option}` is not an option of `{command}`.{hint}"
    if param is not None and type(error).__name__ == "MissingParameter":
        is_option = param.param_type_name == "option"
        # `DATA [DATA2] [section.key=value ...]` needs DATA.
        name = max(param.opts, key=len) if is_option else argument_name(param).split(" [")[0]
        return f"`{error.ctx.command_path}` needs {name}. Example: `{find_example(error.ctx)}`."
    if param is not None and (number := _NUMBER.search(getattr(error, "message", ""))):
        return f"`{max(param.opts, key=len)}` must be {_NUMBERS[number[1]]}{_given_value(error)}."
    message = " ".join(error.format_message().split())
    return message if message.endswith((".", "?")) else f"{message}."


def _given_value(error: Any) -> str:
    """Return the value of the wrong type for a message; an empty string if it is not known."""
    # Some versions of typer raise from an error of pydantic, others quote the value.
    find_errors = getattr(error.__cause__, "errors", None)
    quoted = re.match("'(.*)' is", error.message)
    value = find_errors()[0].get("input") if find_errors else quoted and quoted[1]
    return "" if value is None else f", but is '{value}'"


def _option_names(ctx: Any) -> list[str]:
    return [name for param in ctx.command.get_params(ctx) for name in param.opts]
