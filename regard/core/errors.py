"""Errors for people: name, rule, actual value, what to do."""


class RegardError(Exception):
    """An error a person can act on; the command line prints it as one line and exits with 2."""


class ConfigError(RegardError):
    """A setting is unknown, of the wrong type or outside its limits."""


class DataError(RegardError):
    """A file or a line of data cannot be used."""


class CheckpointError(RegardError):
    """A run folder is missing, incomplete, damaged or from another version."""


class ExportError(RegardError):
    """A model cannot be written for another system."""
