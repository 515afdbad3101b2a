"""Errors with a message for users: name, rule, actual value, what to do."""


class RegardError(Exception):
    """Base class of errors that a user can fix; the command line prints it and exits with 2."""


class ConfigError(RegardError):
    """Setting that is unknown, of the wrong type or outside its limits."""


class DataError(RegardError):
    """File or line of data that cannot be used."""


class CheckpointError(RegardError):
    """Run folder that is missing, incomplete, damaged or from another version."""


class ExportError(RegardError):
    """Model that cannot be exported."""
