from random import Random

import pytest

from regard.data.datasets.synthetic.phrasebook import generate
from regard.data.datasets.synthetic.phrasebook.grammar import Grammar
from tests.unit.data.datasets.synthetic.phrasebook.builders import LEXICON


@pytest.fixture(scope="session")
def examples():
    """5,000 sentence pairs."""
    return generate(5_000, seed=7)


@pytest.fixture(scope="session")
def trees():
    """4,000 sentence trees."""
    grammar = Grammar(LEXICON, Random(11))
    return [grammar.sample() for _ in range(4_000)]
