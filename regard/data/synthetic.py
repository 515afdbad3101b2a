"""The small classics: tasks whose every answer is known, written on the spot.

Tokens are separated by blanks, but dates are written as usual. A seed gives always the same
examples, and no source comes twice.
"""

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from random import Random

from regard.core.config import at_least
from regard.core.errors import ConfigError
from regard.data.examples import Example

LETTERS = "abcdefghijklmnopqrstuvwxyz"
DIGITS = "0123456789"
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
FIRST_DATE = date(1950, 1, 1)
LAST_DATE = date(2049, 12, 31)
MAX_IN_VAIN = 10_000
"""After so many repetitions in a row nothing new is expected."""


def copy(num: int, *, seed: int = 0, min_length: int = 3, max_length: int = 12) -> list[Example]:
    """Write random letters; the target is the source.

    Args:
        num: How many examples.
        seed: Which ones.
        min_length: Fewest tokens.
        max_length: Most tokens.
    """

    def example(tokens: list[str]) -> Example:
        source = " ".join(tokens)
        return Example(source, source, alignment=tuple((i, i) for i in range(len(tokens))))

    return _distinct(num, map(example, _sequences(LETTERS, seed, (min_length, max_length))))


def reverse(num: int, *, seed: int = 0, min_length: int = 3, max_length: int = 12) -> list[Example]:
    """Write random letters; the target is the source read backwards.

    Args:
        num: How many examples.
        seed: Which ones.
        min_length: Fewest tokens.
        max_length: Most tokens.
    """

    def example(tokens: list[str]) -> Example:
        last = len(tokens) - 1
        links = tuple((i, last - i) for i in range(len(tokens)))
        return Example(" ".join(tokens), " ".join(reversed(tokens)), alignment=links)

    return _distinct(num, map(example, _sequences(LETTERS, seed, (min_length, max_length))))


def sort(num: int, *, seed: int = 0, min_length: int = 3, max_length: int = 12) -> list[Example]:
    """Write random digits; the target has them in ascending order.

    Args:
        num: How many examples.
        seed: Which ones.
        min_length: Fewest tokens.
        max_length: Most tokens.
    """

    def example(tokens: list[str]) -> Example:
        return Example(" ".join(tokens), " ".join(sorted(tokens)))

    return _distinct(num, map(example, _sequences(DIGITS, seed, (min_length, max_length))))


def add(num: int, *, seed: int = 0, max_digits: int = 3) -> list[Example]:
    """Write sums such as `1 2 + 3 4 5`; the target is `3 5 7`.

    Args:
        num: How many examples.
        seed: Which ones.
        max_digits: Most digits of each number.
    """
    at_least("max_digits", max_digits, 1)

    def examples(random: Random) -> Iterator[Example]:
        while True:
            first, second = (_number(random, max_digits) for _ in range(2))
            yield Example(" ".join(f"{first}+{second}"), " ".join(str(first + second)))

    return _distinct(num, examples(Random(seed)))


def dates(num: int, *, seed: int = 0) -> list[Example]:
    """Write dates as people do, `March 5, 2021`; the target is `2021-03-05`.

    Args:
        num: How many examples.
        seed: Which ones.
    """

    def examples(random: Random) -> Iterator[Example]:
        while True:
            day = FIRST_DATE + timedelta(random.randrange((LAST_DATE - FIRST_DATE).days + 1))
            yield Example(random.choice(DATE_FORMS)(day), day.isoformat())

    return _distinct(num, examples(Random(seed)))


DATE_FORMS: tuple[Callable[[date], str], ...] = (
    lambda day: f"{MONTHS[day.month - 1]} {day.day}, {day.year}",
    lambda day: f"{day.day} {MONTHS[day.month - 1]} {day.year}",
    lambda day: f"{day.day} {MONTHS[day.month - 1][:3]} {day.year}",
    lambda day: f"{day.day:02}/{MONTHS[day.month - 1][:3]}/{day.year}",
    lambda day: f"{day.day:02}/{day.month:02}/{day.year}",
    lambda day: f"{day.day}.{day.month}.{day.year}",
)
"""Ways to write a date; the day is always before a month in digits."""

SYNTHETIC: dict[str, Callable[..., list[Example]]] = {
    "copy": copy,
    "reverse": reverse,
    "sort": sort,
    "add": add,
    "dates": dates,
}
"""The tasks by name; each takes `num` and `seed`."""


def _sequences(tokens: str, seed: int, lengths: tuple[int, int]) -> Iterator[list[str]]:
    at_least("min_length", lengths[0], 1)
    at_least("max_length", lengths[1], lengths[0])
    random = Random(seed)
    while True:
        yield random.choices(tokens, k=random.randint(*lengths))


def _number(random: Random, max_digits: int) -> int:
    # The number of digits first: else nearly all numbers would have the most digits.
    return random.randrange(10 ** random.randint(1, max_digits))


def _distinct(num: int, examples: Iterator[Example]) -> list[Example]:
    at_least("num", num, 0)
    found: dict[str, Example] = {}
    num_in_vain = 0
    while len(found) < num:
        example = next(examples)
        num_in_vain = num_in_vain + 1 if example.source in found else 0
        found.setdefault(example.source, example)
        if num_in_vain == MAX_IN_VAIN:
            raise ConfigError(
                f"`num` must be at most the number of different examples, but is {num:,} and "
                f"only {len(found):,} were found. Ask for fewer or for longer ones."
            )
    return list(found.values())
