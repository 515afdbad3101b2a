"""Turns of a conversation → one text, as who replies next sees it."""

import re
from collections.abc import Sequence

from regard.core.config import at_least

TURNS = 3
"""Turns that a reply is written from, if not told otherwise."""

SPEAKERS = ("you", "me")
"""Who spoke last before a reply, from the replier's view, and who spoke before that."""

_UNPRINTED = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def write_context(turns: Sequence[str], *, most: int = TURNS) -> str:
    """Write what was said before a reply as one text: `you: hi me: hello you: how are you`.

    Args:
        turns: What was said, the latest last. Speakers alternate, and the last turn is not the
            replier's.
        most: How many of the last turns count.
    """
    at_least("most", most, 1)
    latest = [*reversed(turns)][:most]
    marked = [
        f"{SPEAKERS[place % 2]}: {clean_turn(turn)}".strip() for place, turn in enumerate(latest)
    ]
    return " ".join(reversed(marked))


def clean_turn(text: str) -> str:
    """Put what was said into one line, without control characters and double spaces."""
    return " ".join(_UNPRINTED.sub(" ", text).split())
