"""Some labels of a data set alone: `fashion-mnist:only=bag,coat` or `…:without=bag`."""

import re
from dataclasses import replace

from regard.core.errors import DataError
from regard.core.tables import near, one_of
from regard.data.splits import Splits

_CHOICE = re.compile(r"(?:(?P<before>.*),)?(?P<how>only|without)=(?P<labels>.*)")


def split_choice(argument: str) -> tuple[str, str]:
    """Return what a data set itself is asked for, and which labels of it are wanted.

    Args:
        argument: What stands after the colon, such as `1000,only=bag,coat`.

    Returns:
        As in `("1000", "only=bag,coat")`; either may be empty.
    """
    found = _CHOICE.fullmatch(argument)
    if found is None:
        return argument, ""
    return found["before"] or "", f"{found['how']}={found['labels']}"


def choose_labels(splits: Splits, choice: str, *, name: str) -> Splits:
    """Keep the examples whose label is wanted, on every side.

    Args:
        splits: Examples whose targets are labels.
        choice: What `split_choice` found.
        name: What the data set is called.
    """
    how, _, labels = choice.partition("=")
    named = [label.strip() for label in labels.split(",")]
    sides = (splits.train, splits.valid, splits.test)
    known = dict.fromkeys(sorted({example.target for side in sides for example in side}))
    if unknown := [label for label in named if label not in known]:
        shown = list(known)[:20]
        more = f" and {len(known) - len(shown):,} more" if len(known) > len(shown) else ""
        raise DataError(
            f"What follows '{name}:{how}=' must be labels of it, joined by commas, but one is "
            f"'{unknown[0]}'.{near(unknown[0], known)} Known are {one_of(shown)}{more}."
        )
    kept = [
        [example for example in side if (example.target in named) == (how == "only")]
        for side in sides
    ]
    for part, examples in zip(("train", "valid", "test"), kept, strict=True):
        if not examples:
            raise DataError(f"'{name}:{choice}' leaves nothing on the {part} side.")
    note = f"{splits.note}; {how} {', '.join(named)}: {', '.join(f'{len(k):,}' for k in kept)}"
    return replace(splits, train=kept[0], valid=kept[1], test=kept[2], note=note)
