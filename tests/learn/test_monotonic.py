"""Monotonic attention learns grapheme-to-phoneme conversion and its alignment."""

import random
from functools import partial

import pytest
import torch

from regard.data.text.readers import read_examples
from regard.metrics.text.error_rates import per

pytestmark = pytest.mark.learn


def sample_words(path, num, *, seed):
    """Sample words and their pronunciations from a file."""
    return random.Random(seed).sample(read_examples(path), num)


def assert_monotonic(predictor, examples):
    """Assert that each step attends to one position, never an earlier one, mostly a new one."""
    moves = []
    for attention in predictor.attend(examples):
        weights = attention.weights[0, 0]
        assert set(weights.unique().tolist()) == {0.0, 1.0}
        assert (weights.sum(1) == 1).all()
        moves.append(weights.argmax(1).diff())
        assert (moves[-1] >= 0).all()
    assert (torch.cat(moves) > 0).float().mean() > 0.5


@pytest.mark.parametrize("recipe", ["raffel2017-laptop", "raffel2017"])
def test_pronunciation_is_learned_with_monotonic_attention(learn, data_folder, recipe):
    path = data_folder / "g2p" / "eng_us_train.tsv.gz"
    if not path.exists():
        pytest.skip("the shared data holds no g2p/eng_us_train.tsv.gz")
    trained = learn(partial(sample_words, path), "train.max_steps=800", recipe=recipe)
    words = sample_words(path, 200, seed=0)
    pronounced = trained.predictor.translate([word.source for word in words])
    # Three seeds had 21 to 25.
    assert per(pronounced, [[word.target] for word in words]).value <= 40
    assert_monotonic(trained.predictor, words)
