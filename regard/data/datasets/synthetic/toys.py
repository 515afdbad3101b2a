"""Small synthetic tasks: copy, reverse, sort, add, numbers in words, dates.

Tokens are separated by spaces, but dates are written as usual. A seed gives always the same
examples, and no source comes twice.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
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


@dataclass(frozen=True)
class Toy:
    """A task whose every target is known; called, it writes different examples."""

    sample: Callable[[Random, int, int], Iterator[Example]]
    """Samples examples without end, their sources within two limits."""
    limits: tuple[int, int]
    """The usual limits, both included."""
    unit: str = "tokens"
    """What the limits count."""
    names: tuple[str, str] = ("min_length", "max_length")
    """What messages call the limits."""
    least: int = 1
    """The least lower limit."""
    most: int | None = None
    """The greatest upper limit."""
    step: int = 1
    """How many values are one length."""

    def __call__(
        self, num: int, *, seed: int = 0, limits: tuple[int, int] | None = None
    ) -> list[Example]:
        """Write examples, no source twice.

        Args:
            num: How many examples.
            seed: Which ones.
            limits: Shortest and longest, both included; for `dates`, first and last year.
        """
        at_least("num", num, 0)
        low, high = limits or self.limits
        for name, value, least in zip(self.names, (low, high), (self.least, low), strict=True):
            if self.most is None:
                at_least(name, value, least)
            else:
                within(name, value, low=least, high=self.most)
        examples = self.sample(Random(seed), low, high)
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


def _reorder(
    random: Random, low: int, high: int, *, tokens: str, step: int | None
) -> Iterator[Example]:
    """Sample tokens; the target has them forwards (1), backwards (-1) or sorted (None)."""
    while True:
        source = random.choices(tokens, k=random.randint(low, high))
        if step is None:
            yield Example(" ".join(source), " ".join(sorted(source)))
        else:
            order = range(len(source))[::step]
            yield Example(
                " ".join(source),
                " ".join(source[place] for place in order),
                alignment=tuple(zip(range(len(source)), order, strict=True)),
            )


def _add(random: Random, low: int, high: int) -> Iterator[Example]:
    """Sample sums such as `1 2 + 3 4 5`; the target is `3 5 7`. The longer number is limited."""
    while True:
        # The number of digits first: else nearly all numbers would have the most digits.
        first, second = (random.randrange(10 ** random.randint(1, high)) for _ in range(2))
        if len(str(max(first, second))) >= low:
            yield Example(" ".join(f"{first}+{second}"), " ".join(str(first + second)))


def _numbers(random: Random, low: int, high: int) -> Iterator[Example]:
    """Sample numbers such as `1 2 3`; the target is `one hundred and twenty-three`."""
    sizes = range(low, high + 1)
    # Short numbers are few and come seldom, so that what is held out first leaves some to learn.
    weights = [min(10**size, 1000) for size in sizes]
    while True:
        (size,) = random.choices(sizes, weights)
        number = random.randrange(10 ** (size - 1) if size > 1 else 0, 10**size)
        yield Example(" ".join(str(number)), spell(number))


def _dates(random: Random, low: int, high: int) -> Iterator[Example]:
    """Sample dates as people write them, `March 5, 2021`; the target is `2021-03-05`."""
    first, last = date(low, 1, 1), date(high, 12, 31)
    while True:
        day = first + timedelta(random.randrange((last - first).days + 1))
        yield Example(random.choice(DATE_FORMS)(day), day.isoformat())


DATE_FORMS: tuple[Callable[[date], str], ...] = (
    lambda day: f"{MONTHS[day.month - 1]} {day.day}, {day.year}",
    lambda day: f"{day.day} {MONTHS[day.month - 1]} {day.year}",
    lambda day: f"{day.day} {MONTHS[day.month - 1][:3]} {day.year}",
    lambda day: f"{day.day:02}/{MONTHS[day.month - 1][:3]}/{day.year}",
    lambda day: f"{day.day:02}/{day.month:02}/{day.year}",
    lambda day: f"{day.day}.{day.month}.{day.year}",
)
"""Ways to write a date; the day is always before a month in digits."""

copy = Toy(partial(_reorder, tokens=LETTERS, step=1), (3, 12))
reverse = Toy(partial(_reorder, tokens=LETTERS, step=-1), (3, 12))
sort = Toy(partial(_reorder, tokens=DIGITS, step=None), (3, 12))
add = Toy(_add, (1, 3), "digits", ("min_digits", "max_digits"))
numbers = Toy(_numbers, (1, 6), "digits", ("min_digits", "max_digits"), most=MAX_DIGITS)
dates = Toy(
    _dates, (1950, 2049), "years", ("first_year", "last_year"), least=1000, most=9999, step=10
)

SYNTHETIC: dict[str, Toy] = {
    "copy": copy,
    "reverse": reverse,
    "sort": sort,
    "add": add,
    "numbers": numbers,
    "dates": dates,
}
"""The tasks by name."""


def load_toy(name: str, argument: str, seed: int) -> Splits:
    """Return a task as a data set.

    Args:
        name: A row of `SYNTHETIC`.
        argument: The number of training pairs, the limits of their lengths, or both: `5000,3-10`.
        seed: Which ones.
    """
    task = SYNTHETIC[name]
    limits, note = None, ""
    if found := re.fullmatch(r"(?:(.+),)?(\d+)-(\d+)", argument, re.ASCII):
        argument, low, high = found[1] or "", int(found[2]), int(found[3])
        limits, note = (low, high), f", {task.unit} {low} to {high}"
    hint = f", or '{name}:10000,LOW-HIGH' with the range of their {task.unit}"
    num_train = parse_number(argument, name, 10_000, hint=hint)
    examples = task(num_train + 2 * NUM_HELD_OUT, seed=seed, limits=limits)
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
    task = pick(SYNTHETIC, name, "name")
    return {
        length: task(
            num,
            # Its own stream for each length: else long sources would begin with the short ones.
            seed=Random(f"{name} {length} {seed}").getrandbits(32),
            limits=(length, length + task.step - 1),
        )
        for length in lengths
    }


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
    tens, ones = divmod(rest, 10)
    if tens > 1:
        yield f"{TENS[tens]}-{SMALL[ones]}" if ones else TENS[tens]
    elif rest:
        yield SMALL[rest]
