import pytest
import torch

from regard.attention.positions import sinusoids
from regard.studies.reproduce.transformers.permutation import (
    DIM,
    EQUIVARIANCE,
    KINDS,
    MEANING,
    ONE_BLOCK,
    ORDER,
    SOURCE,
    TWO_BLOCKS,
    WORDS,
    encoding_by_formula,
    measure_changes,
)


def test_order_is_a_permutation_of_the_words():
    assert sorted(ORDER) == list(range(len(WORDS)))


def test_without_positions_only_a_deep_decoder_depends_on_order():
    changes = measure_changes("none", seed=4)
    for name in (EQUIVARIANCE, MEANING, SOURCE, ONE_BLOCK):
        assert changes[name] < 1e-9
    assert changes[TWO_BLOCKS] > 1e-3


@pytest.mark.parametrize("kind", [kind for kind in KINDS.values() if kind != "none"])
def test_with_positions_everything_depends_on_order(kind):
    assert min(measure_changes(kind, seed=4).values()) > 1e-3


def test_formula_of_sinusoids_is_that_of_the_package():
    table = sinusoids(torch.arange(3).double(), DIM)
    assert encoding_by_formula(1, 0) == pytest.approx(0.8415, abs=1e-4)
    assert encoding_by_formula(2, 7) == pytest.approx(table[2, 7].item(), abs=1e-5)
