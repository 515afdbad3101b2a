import random

import pytest

from regard.data.datasets.synthetic.toys import MAX_DIGITS, SCALES, SMALL, TENS, spell_number


def value(words):
    """Parse a number in words, from left to right."""
    total, group = 0, 0
    for word in words.replace("-", " ").split():
        if word in SMALL:
            group += SMALL.index(word)
        elif word in TENS:
            group += 10 * TENS.index(word)
        elif word == "hundred":
            group *= 100
        elif word in SCALES:
            total, group = total + group * 1000 ** SCALES.index(word), 0
        else:
            assert word == "and"
    return total + group


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "zero"),
        (7, "seven"),
        (13, "thirteen"),
        (40, "forty"),
        (99, "ninety-nine"),
        (100, "one hundred"),
        (123, "one hundred and twenty-three"),
        (1_000, "one thousand"),
        (1_005, "one thousand and five"),
        (1_205, "one thousand two hundred and five"),
        (20_100, "twenty thousand one hundred"),
        (100_001, "one hundred thousand and one"),
        (112_000, "one hundred and twelve thousand"),
        (1_000_023, "one million and twenty-three"),
        (1_023_000, "one million twenty-three thousand"),
        (10**33, "one decillion"),
    ],
)
def test_numbers_in_british_english_words(number, words):
    assert spell_number(number) == words


def test_words_of_numbers_are_distinct():
    assert len({spell_number(number) for number in range(20_000)}) == 20_000


def test_small_numbers_can_be_parsed_back():
    assert all(value(spell_number(number)) == number for number in range(20_000))


def test_large_numbers_can_be_parsed_back():
    generator = random.Random(0)
    sampled = [generator.randrange(10 ** generator.randint(1, MAX_DIGITS)) for _ in range(500)]
    assert all(value(spell_number(number)) == number for number in [*sampled, 10**MAX_DIGITS - 1])
