"""What is said of files that cannot be read: how many are skipped, and why the first one is."""

from collections.abc import Collection

from regard.core.errors import DataError
from regard.core.logging import logger


def tell_skipped(what: str, reasons: Collection[str], *, num_kept: int, num_asked: int) -> None:
    """Say how many examples are skipped, if any; where none is left, that is an error.

    Args:
        what: What an example has to read, such as "image".
        reasons: Why files cannot be read, a sentence each.
        num_kept: How many examples can be read.
        num_asked: How many there are in all.
    """
    if not reasons:
        return
    first = next(iter(reasons))
    if not num_kept:
        raise DataError(f"No {what} can be read. First: {first}")
    logger.warning(
        "skipped %s of %s examples whose %s cannot be read (first: %s)",
        f"{num_asked - num_kept:,}",
        f"{num_asked:,}",
        what,
        first,
    )
