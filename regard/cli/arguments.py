"""Telling files from settings among the words of a command."""

from regard.core.errors import ConfigError


def split_words(
    words: list[str], *, most_paths: int, default: str | None = None
) -> tuple[list[str], list[str]]:
    """Split words into files or names and settings such as `train.seed=2`.

    Args:
        words: What a person typed, in any order.
        most_paths: How many files may be given.
        default: What is meant where no file is given, if that is allowed.
    """
    settings = [word for word in words if _is_setting(word)]
    paths = [word for word in words if word not in settings]
    if not paths and default is not None:
        return [default], settings
    if not paths:
        raise ConfigError("No data was given. Name a data set or a file before the settings.")
    if len(paths) > most_paths:
        files = "1 file" if most_paths == 1 else f"{most_paths} files"
        raise ConfigError(
            f"At most {files} can be given, but there are {len(paths)}: {', '.join(paths)}. "
            "Settings have the form section.key=value."
        )
    return paths, settings


def _is_setting(word: str) -> bool:
    """Tell a setting from a path and from a data set with an argument, `fsdd:speaker=theo`."""
    key, equals, _ = word.partition("=")
    return bool(equals) and ":" not in key and not word.startswith(("/", "./"))


def split_columns(columns: str) -> tuple[str, ...]:
    """Split what a person typed, such as `source, target,-`, into what stands in each column."""
    return tuple(name.strip() for name in columns.split(","))
