"""Dialogue context: turns of a conversation as one text."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from regard.core.config import at_least

TURNS = 3
"""Default number of turns in the context of a reply."""

SPEAKERS = ("you", "me")
"""Names of the speakers of the last turn and of the turn before it, for the replying speaker."""

_MARKS = tuple(f"{speaker}: " for speaker in SPEAKERS)
_UNPRINTED = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def write_context(turns: Sequence[str], *, max_turns: int = TURNS) -> str:
    """Join the turns before a reply into one text: `you: hi me: hello you: how are you`.

    Args:
        turns: Turns, the latest last. Speakers alternate; the last turn is the other speaker's.
        max_turns: Number of latest turns to keep.
    """
    at_least("max_turns", max_turns, 1)
    latest = [*reversed(turns)][:max_turns]
    prefixed = [
        f"{SPEAKERS[index % 2]}: {clean_turn(turn)}".strip() for index, turn in enumerate(latest)
    ]
    return " ".join(reversed(prefixed))


def has_turns(sources: Iterable[Any]) -> bool:
    """Return whether most sources are contexts with speakers, as `write_context` writes them."""
    are_contexts = [isinstance(one, str) and one.startswith(_MARKS) for one in sources]
    return 2 * sum(are_contexts) > len(are_contexts)


def clean_turn(text: str) -> str:
    """Return a turn as one line without control characters and repeated spaces."""
    return " ".join(_UNPRINTED.sub(" ", text).split())
