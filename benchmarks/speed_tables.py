"""Components of the page about training speed against other implementations."""

from collections.abc import Mapping

from components import Page, table
from results import Row

from regard.bench.entries import OURS

HEAD = ("work", "ours, tokens/s", "best peer", "ratio", "goal", "share of the matrix rate")


def speed_against_peers(page: Page, file: str, goals: Mapping[str, str]) -> str:
    """Return the throughput of our training and of the fastest peer, of each size and precision.

    Args:
        page: The page.
        file: A result file of `regard bench train`; nothing is returned if it does not exist.
        goals: Goals by `SIZE PRECISION`.
    """
    value = page.value.get(file)
    if value is None:
        return "Not measured yet."
    rows = []
    for size in value["sizes"]:
        for ours in _of(size, OURS):
            work = f"{size['size']} {ours['precision']}"
            rows.append((work, *_cells(ours, _best_peer(size, ours)), goals.get(work, "–")))
    rows = [
        (work, speed, peer, ratio, goal, share) for work, speed, peer, ratio, share, goal in rows
    ]
    remarks = [f"- {text}" for size in value["sizes"] for text in _remarks(size)]
    return "\n\n".join(
        [value["hardware"], table(HEAD, rows), *["\n".join(remarks)] * bool(remarks)]
    )


def _of(size: Row, contender: str) -> list[Row]:
    return [one for one in size["results"] if one["contender"] == contender]


def _best_peer(size: Row, ours: Row) -> Row | None:
    peers = [
        one
        for one in size["results"]
        if one["contender"] != OURS
        and one["precision"] == ours["precision"]
        and one["tokens_per_second"]
    ]
    return max(peers, key=lambda one: one["tokens_per_second"], default=None)


def _cells(ours: Row, peer: Row | None) -> tuple[str, ...]:
    """Return the cells of throughput, best peer, ratio and share."""
    speed = ours["tokens_per_second"]
    if not speed:
        return ("–",) * 4
    share = f"{100 * ours['share']:.0f} %" if "share" in ours else "–"
    if peer is None:
        return (f"{speed:,.0f}", "–", "–", share)
    other = peer["tokens_per_second"]
    return (f"{speed:,.0f}", f"{peer['contender']} {other:,.0f}", f"{speed / other:.2f}", share)


def _remarks(size: Row) -> list[str]:
    """Return the errors and notes of contenders, such as why a peer was not measured."""
    return [
        f"{size['size']} {one['precision']}, {one['contender']}: {text}"
        for one in size["results"]
        if (text := one.get("error") or one.get("note"))
    ]


def training_times(page: Page, file: str) -> str:
    """Return the times of whole trainings in a result file, with their goals."""
    rows = [
        (one["work"], one["value"], one["goal"])
        for one in page.value.get(file, {}).get("times", ())
    ]
    return table(("work", "measured", "goal"), rows)


COMPONENTS = (speed_against_peers, training_times)
"""Functions that the page calls."""
