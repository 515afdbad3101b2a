import math

import pytest

from regard.core.errors import DataError
from regard.metrics.bootstrap import percentile_interval, resamples
from regard.metrics.text.perplexity import TextSize, perplexities, perplexity

LINES = ["ab cd\n", "\n", "ef"]


def test_size_counts_words_line_ends_and_characters():
    size = TextSize.of(LINES, num_tokens=4)
    assert (size.num_tokens, size.num_words, size.num_characters) == (4, 5, 9)


def test_perplexity_is_computed_per_unit():
    found = perplexities(
        9 * math.log(2), TextSize.of(LINES, num_tokens=3), context="context:8|stride:4"
    )
    assert found["perplexity"].value == pytest.approx(8)
    assert found["word_perplexity"].value == pytest.approx(2 ** (9 / 5))
    assert found["bits_per_character"].value == pytest.approx(1)
    assert found["nats_per_character"].value == pytest.approx(math.log(2))
    assert found["perplexity"].signature == "unit:token|units:3|context:8|stride:4"
    assert found["bits_per_character"].signature == "unit:character|units:9|context:8|stride:4"


def test_unknown_tokens_are_in_the_signature():
    size = TextSize.of(LINES, num_tokens=3, num_unknown=2)
    found = perplexities(1.0, size, context="context:all")
    assert all(result.signature.endswith("|unknown:2") for result in found.values())


def test_overflow_gives_an_infinite_perplexity():
    found = perplexities(1e6, TextSize.of(LINES, num_tokens=3), context="context:all")
    assert found["perplexity"].value == math.inf


def test_empty_text_is_refused():
    with pytest.raises(DataError, match="at least one token"):
        perplexities(0.0, TextSize.of([], num_tokens=0), context="context:all")


def test_perplexity_of_sentences_is_per_token():
    found = perplexity([math.log(2), 5 * math.log(2)], [1, 2], context="context:all")
    assert found.value == pytest.approx(4)
    assert found.signature == "unit:token|units:3|context:all"
    assert found.interval is None
    assert found.detail == pytest.approx({"nll": 6 * math.log(2), "units": 3})


def test_interval_equals_that_of_resampled_sentences():
    nlls, lengths = [1.0, 6.0, 2.0, 9.0], [2, 3, 4, 5]
    found = perplexity(nlls, lengths, context="context:all", num_bootstrap=50)
    again = [math.exp(drawn @ nlls / (drawn @ lengths)) for drawn in resamples(4, 50)]
    assert found.interval == pytest.approx(percentile_interval(again))
    assert found.interval[0] < found.value < found.interval[1]
    assert found.signature.endswith("|bs:50|seed:12345")


def test_overflow_of_sentences_gives_an_infinite_perplexity():
    assert perplexity([1e6], [3], context="context:all", num_bootstrap=3).value == math.inf
