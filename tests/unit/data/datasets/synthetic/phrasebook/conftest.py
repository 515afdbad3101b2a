from random import Random

import pytest

from regard.data.datasets.synthetic.phrasebook import generate
from regard.data.datasets.synthetic.phrasebook.grammar import Grammar
from tests.phrases import LEXICON


@pytest.fixture(scope="session")
def examples():
    """Five thousand pairs, tagged and aligned."""
    return generate(5_000, seed=7)


@pytest.fixture(scope="session")
def trees():
    """Four thousand sentences before they are written in any language."""
    grammar = Grammar(LEXICON, Random(11))
    return [grammar.sample() for _ in range(4_000)]
