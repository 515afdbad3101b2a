"""Separate files from overrides among the arguments of a command."""

from regard.core.errors import ConfigError


def split_arguments(
    arguments: list[str], *, max_paths: int, default: str | None = None
) -> tuple[list[str], list[str]]:
    """Split arguments into files or data set names and overrides such as `train.seed=2`.

    Args:
        arguments: Arguments in any order.
        max_paths: Maximum number of files.
        default: File to use if none is given; without it, a file is required.
    """
    overrides = [argument for argument in arguments if _is_override(argument)]
    paths = [argument for argument in arguments if argument not in overrides]
    if not paths and default is not None:
        return [default], overrides
    if not paths:
        raise ConfigError("No data was given. Name a data set or a file before the settings.")
    if len(paths) > max_paths:
        files = "1 file" if max_paths == 1 else f"{max_paths} files"
        raise ConfigError(
            f"At most {files} can be given, but there are {len(paths)}: {', '.join(paths)}. "
            "Settings have the form section.key=value."
        )
    return paths, overrides


def _is_override(argument: str) -> bool:
    """Return whether an argument is an override, not a path or a data set (`fsdd:speaker=theo`)."""
    key, equals, _ = argument.partition("=")
    return bool(equals) and ":" not in key and not argument.startswith(("/", "./"))


def split_columns(columns: str) -> tuple[str, ...]:
    """Split the roles of columns, such as `source, target,-`."""
    return tuple(name.strip() for name in columns.split(","))
