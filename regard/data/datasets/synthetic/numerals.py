"""Whole numbers in English words, British style: 1,205 → one thousand two hundred and five."""

from collections.abc import Iterator

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


def spell(number: int) -> str:
    """Write a number of at most `MAX_DIGITS` digits in words."""
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
