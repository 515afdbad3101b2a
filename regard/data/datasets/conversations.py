"""Conversations: context turns → reply."""

import json
import re
from collections.abc import Callable
from functools import partial
from itertools import groupby, pairwise
from typing import Any

from regard.core.errors import DataError
from regard.core.logging import logger
from regard.data.datasets.loading import Parts, build_splits, find_package
from regard.data.example import Example
from regard.data.splits import Splits, hash_text
from regard.data.text.dialogue import TURNS, clean_turn, write_context

HELD_OUT = 0.03
"""Share of the conversations held out for validation, and for the test."""

MAX_HELD_OUT = 2_000
"""Maximum number of validation examples, and of test examples."""

REVERSED = "reversed"


def load_chitchat(argument: str, seed: int) -> Splits:
    """Load the replies of the Chit-Chat Challenge (Myers et al. 2020), split by conversation.

    Args:
        argument: Number of context turns; or `reversed` to predict the turn before a reply from
            the reply.
        seed: Seed of the split.
    """
    build_examples = _parse_argument(argument)
    parts: Parts = ([], [], [])
    num_conversations = 0
    for name, turns in read_chitchat().items():
        examples = build_examples(turns)
        parts[_assign_part(name, seed)].extend(examples)
        num_conversations += bool(examples)
    for held_out in parts[1:]:
        # The rest is dropped: moved to training, it would share conversations with held-out data.
        del held_out[MAX_HELD_OUT:]
    return build_splits(
        parts,
        f"{num_conversations:,} conversations of the `chitchat-dataset` package, seed {seed}, "
        "split by conversation",
    )


def reply_examples(turns: list[str], *, num_turns: int = TURNS) -> list[Example]:
    """Return an example per turn except the first: the last turns before it → the turn."""
    return [
        Example(
            write_context(turns[max(0, number - num_turns) : number], max_turns=num_turns), reply
        )
        for number, reply in enumerate(turns)
        if number
    ]


def reversed_examples(turns: list[str]) -> list[Example]:
    """Return an example per turn except the last: the reply to it → the turn."""
    return [Example(reply, turn) for turn, reply in pairwise(turns)]


def read_chitchat() -> dict[str, list[str]]:
    """Read the turns of each conversation of the `chitchat-dataset` package, by name.

    Consecutive messages of one speaker are one turn.
    """
    path = find_package("chitchat", "chitchat_dataset") / "dataset.json"
    conversations = json.loads(path.read_text(encoding="utf-8"))
    return {name: _turns(value["messages"]) for name, value in conversations.items()}


def _turns(blocks: list[list[dict[str, Any]]]) -> list[str]:
    messages = [
        (message["sender"], text)
        for block in blocks
        for message in block
        if (text := clean_turn(message["text"]))
    ]
    turns = groupby(messages, key=lambda message: message[0])
    return [" ".join(text for _, text in turn) for _, turn in turns]


def _assign_part(name: str, seed: int) -> int:
    """Assign a conversation to a split: 0 = training, 1 = validation, 2 = test."""
    fraction = int.from_bytes(hash_text(name, seed)) / 2**64
    return 2 if fraction < HELD_OUT else 1 if fraction < 2 * HELD_OUT else 0


def _parse_argument(argument: str) -> Callable[[list[str]], list[Example]]:
    """Return the function that builds examples from the turns of a conversation."""
    match = re.fullmatch(rf"([1-9]\d{{0,2}})?,?({REVERSED})?", argument, re.ASCII)
    if not match or argument != ",".join(filter(None, match.groups())):
        raise DataError(
            "The argument of 'chitchat:' must be the number of context turns, "
            f"'{REVERSED}', or both as in '5,{REVERSED}', but is '{argument}'."
        )
    if not match[2]:
        return partial(reply_examples, num_turns=int(match[1] or TURNS))
    if match[1]:
        logger.warning(
            f"'chitchat:{argument}' is 'chitchat:{REVERSED}': the number of context turns is not "
            "used when a turn is predicted from its reply."
        )
    return reversed_examples
