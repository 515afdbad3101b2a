"""Toy tasks: copy, reverse, sort, add, numbers in words, dates.

Tokens are separated by spaces, except in dates. Examples are determined by the seed, and no source
occurs twice.
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
from regard.data.datasets.loading import build_splits, parse_number, split_off
from regard.data.example import Example
from regard.data.splits import Splits

LETTERS = "abcdefghijklmnopqrstuvwxyz"
DIGITS = "0123456789"
MONTHS = (
    "January February March April May June July August September October November December"
).split()
NUM_HELD_OUT = 500
"""Number of validation examples, and of test examples, of a built-in data set."""

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

MAX_DUPLICATES = 10_000
"""Number of consecutive duplicates after which sampling stops."""


@dataclass(frozen=True)
class Toy:
    """A task with a sampler of examples; calling it returns distinct examples."""

    sample: Callable[[Random, int, int], Iterator[Example]]
    """Function that yields examples indefinitely, with source lengths within two limits."""
    limits: tuple[int, int]
    """Default limits, inclusive."""
    unit: str = "tokens"
    """Unit of the limits."""
    names: tuple[str, str] = ("min_length", "max_length")
    """Names of the limits in messages."""
    minimum: int = 1
    """Minimum of the lower limit."""
    maximum: int | None = None
    """Maximum of the upper limit."""
    step: int = 1
    """Number of consecutive limits that count as one length."""

    def __call__(
        self, num: int, *, seed: int = 0, limits: tuple[int, int] | None = None
    ) -> list[Example]:
        """Generate examples with distinct sources.

        Args:
            num: Number of examples.
            seed: Seed of the examples.
            limits: Minimum and maximum length, inclusive; for `dates`, first and last year.
        """
        at_least("num", num, 0)
        low, high = limits or self.limits
        for name, value, minimum in zip(self.names, (low, high), (self.minimum, low), strict=True):
            if self.maximum is None:
                at_least(name, value, minimum)
            else:
                within(name, value, low=minimum, high=self.maximum)
        samples = self.sample(Random(seed), low, high)
        examples: dict[str, Example] = {}
        num_duplicates = 0
        while len(examples) < num:
            example = next(samples)
            num_duplicates = num_duplicates + 1 if example.source in examples else 0
            examples.setdefault(example.source, example)
            if num_duplicates == MAX_DUPLICATES:
                raise ConfigError(
                    f"`num` must be at most the number of different examples, but is {num:,} and "
                    f"only {len(examples):,} were found. Reduce `num` or increase the limits."
                )
        return list(examples.values())


def _reorder(
    random: Random, low: int, high: int, *, tokens: str, step: int | None
) -> Iterator[Example]:
    """Sample tokens; the target has them in order (1), in reverse order (-1) or sorted (None)."""
    while True:
        source = random.choices(tokens, k=random.randint(low, high))
        if step is None:
            yield Example(" ".join(source), " ".join(sorted(source)))
        else:
            order = range(len(source))[::step]
            yield Example(
                " ".join(source),
                " ".join(source[index] for index in order),
                alignment=tuple(zip(range(len(source)), order, strict=True)),
            )


def _add(random: Random, low: int, high: int) -> Iterator[Example]:
    """Sample sums such as `1 2 + 3 4 5`, target `3 5 7`. The limits apply to the longer number."""
    while True:
        # Sample the number of digits first, or nearly all numbers would have the maximum.
        first, second = (random.randrange(10 ** random.randint(1, high)) for _ in range(2))
        if len(str(max(first, second))) >= low:
            yield Example(" ".join(f"{first}+{second}"), " ".join(str(first + second)))


def _numbers(random: Random, low: int, high: int) -> Iterator[Example]:
    """Sample numbers such as `1 2 3`; the target is `one hundred and twenty-three`."""
    sizes = range(low, high + 1)
    # Few numbers are short; a low weight keeps some of them for training.
    weights = [min(10**size, 1000) for size in sizes]
    while True:
        (size,) = random.choices(sizes, weights)
        number = random.randrange(10 ** (size - 1) if size > 1 else 0, 10**size)
        yield Example(" ".join(str(number)), spell_number(number))


def _dates(random: Random, low: int, high: int) -> Iterator[Example]:
    """Sample dates in several formats, such as `March 5, 2021`; the target is `2021-03-05`."""
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
"""Date formats; the day always precedes a numeric month."""

copy = Toy(partial(_reorder, tokens=LETTERS, step=1), (3, 12))
reverse = Toy(partial(_reorder, tokens=LETTERS, step=-1), (3, 12))
sort = Toy(partial(_reorder, tokens=DIGITS, step=None), (3, 12))
add = Toy(_add, (1, 3), "digits", ("min_digits", "max_digits"))
numbers = Toy(_numbers, (1, 6), "digits", ("min_digits", "max_digits"), maximum=MAX_DIGITS)
dates = Toy(
    _dates, (1950, 2049), "years", ("first_year", "last_year"), minimum=1000, maximum=9999, step=10
)

TOYS: dict[str, Toy] = {
    "copy": copy,
    "reverse": reverse,
    "sort": sort,
    "add": add,
    "numbers": numbers,
    "dates": dates,
}
"""Toy tasks by name."""


def load_toy(name: str, argument: str, seed: int) -> Splits:
    """Generate the data set of a toy task.

    Args:
        name: Key of `TOYS`.
        argument: Number of training pairs, limits of their lengths, or both: `5000,3-10`.
        seed: Seed of the examples.
    """
    task = TOYS[name]
    limits, note = None, ""
    if match := re.fullmatch(r"(?:(.+),)?(\d+)-(\d+)", argument, re.ASCII):
        argument, low, high = match[1] or "", int(match[2]), int(match[3])
        limits, note = (low, high), f", {task.unit} {low} to {high}"
    hint = f", or '{name}:10000,LOW-HIGH' with the range of their {task.unit}"
    num_train = parse_number(argument, name, 10_000, hint=hint)
    examples = task(num_train + 2 * NUM_HELD_OUT, seed=seed, limits=limits)
    parts = split_off(examples, NUM_HELD_OUT)
    return build_splits(parts, f"generated with seed {seed}{note}", "; no source is shared")


def generate_by_length(
    name: str, *, lengths: Sequence[int], num: int, seed: int
) -> dict[int, list[Example]]:
    """Generate test examples of each length, to measure length generalisation.

    A length is the number of tokens of the source; for `add` the digits of the longer number; for
    `numbers` the digits; for `dates` the first of ten years. For lengths that occur in training,
    remove the training examples with `regard.data.splits.drop_overlap`.

    Args:
        name: Key of `TOYS`.
        lengths: Lengths to generate.
        num: Number of examples per length.
        seed: Seed of the examples.
    """
    task = pick(TOYS, name, "name")
    return {
        length: task(
            num,
            # A separate seed per length, or long sources would start like short ones.
            seed=Random(f"{name} {length} {seed}").getrandbits(32),
            limits=(length, length + task.step - 1),
        )
        for length in lengths
    }


def spell_number(number: int) -> str:
    """Return a number of at most `MAX_DIGITS` digits in English words, in British style."""
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
    """Yield the words of a number below a thousand; none for zero."""
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
