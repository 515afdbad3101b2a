import math

import pytest

from regard.core.errors import DataError
from regard.metrics.perplexity import TextSize, perplexities

LINES = ["ab cd\n", "\n", "ef"]


def test_size_counts_words_line_ends_and_characters():
    size = TextSize.of(LINES, num_tokens=4)
    assert (size.num_tokens, size.num_words, size.num_characters) == (4, 5, 9)


def test_surprise_is_shared_by_every_unit():
    found = perplexities(
        9 * math.log(2), TextSize.of(LINES, num_tokens=3), context="context:8|stride:4"
    )
    assert found["perplexity"].value == pytest.approx(8)
    assert found["word_perplexity"].value == pytest.approx(2 ** (9 / 5))
    assert found["bits_per_character"].value == pytest.approx(1)
    assert found["nats_per_character"].value == pytest.approx(math.log(2))
    assert found["perplexity"].signature == "unit:token|units:3|context:8|stride:4"
    assert found["bits_per_character"].signature == "unit:character|units:9|context:8|stride:4"


def test_unknown_tokens_are_told():
    size = TextSize.of(LINES, num_tokens=3, num_unknown=2)
    found = perplexities(1.0, size, context="context:all")
    assert all(result.signature.endswith("|unknown:2") for result in found.values())


def test_a_hopeless_model_is_infinitely_perplexed():
    found = perplexities(1e6, TextSize.of(LINES, num_tokens=3), context="context:all")
    assert found["perplexity"].value == math.inf


def test_empty_text_is_refused():
    with pytest.raises(DataError, match="at least one token to be measured"):
        perplexities(0.0, TextSize.of([], num_tokens=0), context="context:all")
