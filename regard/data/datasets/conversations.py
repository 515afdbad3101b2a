"""Conversations: what was said → what was replied."""

import json
import re
from collections.abc import Callable
from functools import partial
from itertools import groupby, pairwise
from typing import Any

from regard.core.errors import DataError
from regard.core.logging import logger
from regard.data.datasets.loading import Parts, find_package, with_sizes
from regard.data.example import Example
from regard.data.splits import Splits, hash_text
from regard.data.text.dialogue import TURNS, clean_turn, write_context

HELD_OUT = 0.03
"""Share of the conversations that is held out for the test, and as many to validate."""

MOST_HELD_OUT = 2_000
"""Replies held out at most, for each of both."""

REVERSED = "reversed"


def load_chitchat(argument: str, seed: int) -> Splits:
    """Return the replies of the Chit-Chat Challenge (Myers et al. 2020), split by conversation.

    Args:
        argument: How many turns a reply is written from; `reversed` to tell the turn before a
            reply from the reply.
        seed: Another seed is another split.
    """
    pair = _choose_pairs(argument)
    parts: Parts = ([], [], [])
    num_conversations = 0
    for name, turns in read_chitchat().items():
        examples = pair(turns)
        parts[_side(name, seed)].extend(examples)
        num_conversations += bool(examples)
    for held_out in parts[1:]:
        # What is beyond goes to no side: training would know the rest of its conversation.
        del held_out[MOST_HELD_OUT:]
    return with_sizes(
        parts,
        f"{num_conversations:,} conversations of the `chitchat-dataset` package, seed {seed}, "
        "split by conversation",
    )


def replies(turns: list[str], *, num_turns: int = TURNS) -> list[Example]:
    """Return an example of every turn but the first: the last turns before it → this turn."""
    return [
        Example(write_context(turns[max(0, number - num_turns) : number], most=num_turns), reply)
        for number, reply in enumerate(turns)
        if number
    ]


def questions(turns: list[str]) -> list[Example]:
    """Return an example of every turn but the last: the reply to it → this turn."""
    return [Example(reply, turn) for turn, reply in pairwise(turns)]


def read_chitchat() -> dict[str, list[str]]:
    """Read the turns of each conversation of the `chitchat-dataset` package, by its name.

    Whatever one speaker says until the other speaks is one turn.
    """
    path = find_package("chitchat", "chitchat_dataset") / "dataset.json"
    conversations = json.loads(path.read_text(encoding="utf-8"))
    return {name: _turns(value["messages"]) for name, value in conversations.items()}


def _turns(blocks: list[list[dict[str, Any]]]) -> list[str]:
    said = [
        (message["sender"], text)
        for block in blocks
        for message in block
        if (text := clean_turn(message["text"]))
    ]
    turns = groupby(said, key=lambda pair: pair[0])
    return [" ".join(text for _, text in turn) for _, turn in turns]


def _side(name: str, seed: int) -> int:
    """Return where a conversation goes: 0 = training, 1 = validation, 2 = test."""
    draw = int.from_bytes(hash_text(name, seed)) / 2**64
    return 2 if draw < HELD_OUT else 1 if draw < 2 * HELD_OUT else 0


def _choose_pairs(argument: str) -> Callable[[list[str]], list[Example]]:
    """Return what makes pairs of a conversation's turns."""
    found = re.fullmatch(rf"([1-9]\d{{0,2}})?,?({REVERSED})?", argument, re.ASCII)
    if not found or argument != ",".join(filter(None, found.groups())):
        raise DataError(
            "What follows 'chitchat:' must be the number of turns that a reply is written from, "
            f"'{REVERSED}', or both as in '5,{REVERSED}', but is '{argument}'."
        )
    if not found[2]:
        return partial(replies, num_turns=int(found[1] or TURNS))
    if found[1]:
        logger.warning(
            f"'chitchat:{argument}' is 'chitchat:{REVERSED}': a reply tells one turn, whatever it "
            "is written from."
        )
    return questions
