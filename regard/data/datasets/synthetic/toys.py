"""Small synthetic tasks: copy, reverse, sort, add, numbers in words, dates.

Tokens are separated by spaces, but dates are written as usual. A seed gives always the same
examples, and no source comes twice.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random

from regard.core.config import at_least, within
from regard.core.errors import ConfigError
from regard.core.tables import pick
from regard.data.datasets.loading import parse_number, split_off, with_sizes
from regard.data.example import Example
from regard.data.splits import Splits

LETTERS = "abcdefghijklmnopqrstuvwxyz"
DIGITS = "0123456789"
MONTHS = (
    "January February March April May June July August September October November December"
).split()
NUM_HELD_OUT = 500
"""Validation examples, and test examples, of a built-in data set."""

SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
).split()
TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()
SCALES = (
    "_ thousand million billion trillion quadrillion quintillion sextillion septillion octillion "
    "nonillion decillion"
).split()
"""Names of the powers of a thousand."""

MAX_DIGITS = 3 * len(SCALES)

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


def add(num: int, *, seed: int = 0, min_digits: int = 1, max_digits: int = 3) -> list[Example]:
    """Write sums such as `1 2 + 3 4 5`; the target is `3 5 7`.

    Args:
        num: How many examples.
        seed: Which ones.
        min_digits: Fewest digits of the longer number.
        max_digits: Most digits of each number.
    """
    _check_digits(min_digits, max_digits)

    def examples(random: Random) -> Iterator[Example]:
        while True:
            first, second = (_number(random, max_digits) for _ in range(2))
            if len(str(max(first, second))) >= min_digits:
                yield Example(" ".join(f"{first}+{second}"), " ".join(str(first + second)))

    return _distinct(num, examples(Random(seed)))


def numbers(num: int, *, seed: int = 0, min_digits: int = 1, max_digits: int = 6) -> list[Example]:
    """Write numbers such as `1 2 3`; the target is `one hundred and twenty-three`.

    Args:
        num: How many examples.
        seed: Which ones.
        min_digits: Fewest digits.
        max_digits: Most digits.
    """
    _check_digits(min_digits, max_digits)
    within("max_digits", max_digits, low=1, high=MAX_DIGITS)
    sizes = range(min_digits, max_digits + 1)
    # Short numbers are few and come seldom, so that what is held out first leaves some to learn.
    weights = [min(10**size, 1000) for size in sizes]

    def examples(random: Random) -> Iterator[Example]:
        while True:
            (size,) = random.choices(sizes, weights)
            number = random.randrange(10 ** (size - 1) if size > 1 else 0, 10**size)
            yield Example(" ".join(str(number)), spell(number))

    return _distinct(num, examples(Random(seed)))


def dates(
    num: int, *, seed: int = 0, first_year: int = 1950, last_year: int = 2049
) -> list[Example]:
    """Write dates as people do, `March 5, 2021`; the target is `2021-03-05`.

    Args:
        num: How many examples.
        seed: Which ones.
        first_year: Earliest year.
        last_year: Latest year.
    """
    within("first_year", first_year, low=1000, high=9999)
    within("last_year", last_year, low=first_year, high=9999)
    first, last = date(first_year, 1, 1), date(last_year, 12, 31)

    def examples(random: Random) -> Iterator[Example]:
        while True:
            day = first + timedelta(random.randrange((last - first).days + 1))
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
    "numbers": numbers,
    "dates": dates,
}
"""The tasks by name; each takes `num`, `seed` and the two limits of its range."""


@dataclass(frozen=True)
class Range:
    """How long the sources of a task are, or what else says how far they go."""

    low: str
    """Name of the lower limit, as the task takes it."""
    high: str
    """Name of the upper limit."""
    unit: str
    """What is counted."""
    step: int = 1
    """How many values are one length."""


RANGES: dict[str, Range] = {
    "copy": Range("min_length", "max_length", "tokens"),
    "reverse": Range("min_length", "max_length", "tokens"),
    "sort": Range("min_length", "max_length", "tokens"),
    "add": Range("min_digits", "max_digits", "digits"),
    "numbers": Range("min_digits", "max_digits", "digits"),
    "dates": Range("first_year", "last_year", "years", step=10),
}


def generate(
    name: str, num: int, *, seed: int = 0, limits: tuple[int, int] | None = None
) -> list[Example]:
    """Write examples of a task within limits; within its own if none are given.

    Args:
        name: A row of `SYNTHETIC`.
        num: How many examples.
        seed: Which ones.
        limits: Shortest and longest, both included; for `dates`, first and last year.
    """
    task = pick(SYNTHETIC, name, "name")
    if limits is None:
        return task(num, seed=seed)
    return task(num, seed=seed, **{RANGES[name].low: limits[0], RANGES[name].high: limits[1]})


def load_toy(name: str, argument: str, seed: int) -> Splits:
    """Return a task as a data set.

    Args:
        name: A row of `SYNTHETIC`.
        argument: The number of training pairs, the limits of their lengths, or both: `5000,3-10`.
        seed: Which ones.
    """
    unit = RANGES[name].unit
    limits, note = None, ""
    if found := re.fullmatch(r"(?:(.+),)?(\d+)-(\d+)", argument, re.ASCII):
        argument, low, high = found[1] or "", int(found[2]), int(found[3])
        limits, note = (low, high), f", {unit} {low} to {high}"
    hint = f", or '{name}:10000,LOW-HIGH' with the range of their {unit}"
    num_train = parse_number(argument, name, 10_000, hint=hint)
    examples = generate(name, num_train + 2 * NUM_HELD_OUT, seed=seed, limits=limits)
    parts = split_off(examples, NUM_HELD_OUT)
    return with_sizes(parts, f"generated with seed {seed}{note}", "; no source is shared")


def longer(name: str, *, lengths: Sequence[int], num: int, seed: int) -> dict[int, list[Example]]:
    """Write test examples of exactly each length, to see how a model does beyond its training.

    A length is the number of tokens of the source; for `add` the digits of the longer number, for
    `numbers` the digits; for `dates` it is a year, and stands for the ten years from it on. With a
    length that was also trained on, drop what training has: `regard.data.splits.drop_overlap`.

    Args:
        name: A row of `SYNTHETIC`.
        lengths: The lengths asked for.
        num: How many examples of each.
        seed: Which ones.
    """
    pick(SYNTHETIC, name, "name")
    last = RANGES[name].step - 1
    return {
        length: generate(
            name,
            num,
            # Its own stream for each length: else long sources would begin with the short ones.
            seed=Random(f"{name} {length} {seed}").getrandbits(32),
            limits=(length, length + last),
        )
        for length in lengths
    }


def _sequences(tokens: str, seed: int, lengths: tuple[int, int]) -> Iterator[list[str]]:
    at_least("min_length", lengths[0], 1)
    at_least("max_length", lengths[1], lengths[0])
    random = Random(seed)
    while True:
        yield random.choices(tokens, k=random.randint(*lengths))


def _check_digits(min_digits: int, max_digits: int) -> None:
    at_least("min_digits", min_digits, 1)
    at_least("max_digits", max_digits, min_digits)


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


def spell(number: int) -> str:
    """Write a number of at most `MAX_DIGITS` digits in English words, British style."""
    return " ".join(_words(number)) if number else SMALL[0]


def _words(number: int) -> Iterator[str]:
    for power in range(len(SCALES) - 1, 0, -1):
        group = number // 1000**power % 1000
        if group:
            yield from _group(group)
            yield SCALES[power]
    last = number % 1000
    if number > last and 0 < last < 100:
        yield "and"
    yield from _group(last)


def _group(number: int) -> Iterator[str]:
    """Write a number below a thousand; nothing for zero."""
    hundreds, rest = divmod(number, 100)
    if hundreds:
        yield SMALL[hundreds]
        yield "hundred"
        if rest:
            yield "and"
    if rest:
        yield _below_hundred(rest)


def _below_hundred(number: int) -> str:
    tens, ones = divmod(number, 10)
    if tens < 2:
        return SMALL[number]
    return f"{TENS[tens]}-{SMALL[ones]}" if ones else TENS[tens]
