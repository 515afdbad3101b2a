"""Telling files from settings among the words of a command."""

from regard.core.errors import ConfigError


def split_words(words: list[str], *, most_paths: int) -> tuple[list[str], list[str]]:
    """Split words into files or names, which come first, and settings such as `train.seed=2`."""
    settings = [word for word in words if "=" in word and not word.startswith(("/", "./"))]
    paths = [word for word in words if word not in settings]
    if not paths:
        raise ConfigError("No data was given. Name a data set or a file before the settings.")
    if len(paths) > most_paths:
        raise ConfigError(
            f"At most {most_paths} files can be given, but there are {len(paths)}: "
            f"{', '.join(paths)}. Settings have the form section.key=value."
        )
    return paths, settings
