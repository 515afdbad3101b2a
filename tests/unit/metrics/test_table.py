import pytest

from regard.core.errors import ConfigError
from regard.core.tables import pick
from regard.metrics.table import ERROR_RATES, METRICS

RIGHT = "the cat sat on the mat"
OTHER = "two dogs run through deep snow"
BEST = {"lecture_bleu": 1, "cider": 10, **dict.fromkeys(ERROR_RATES, 0)}


@pytest.mark.parametrize("name", [name for name in METRICS if not name.startswith("distinct")])
def test_error_rates_are_the_metrics_that_are_zero_for_exact_matches(name):
    found = METRICS[name]([RIGHT, OTHER], [[RIGHT], [OTHER]]).value
    assert found == pytest.approx(BEST.get(name, 100))


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_accepts_an_empty_hypothesis(name):
    assert METRICS[name](["", ""], [["a b c"], ["d"]], num_bootstrap=2).value in {0, 100}


def test_rouge_is_rouge_l():
    assert METRICS["rouge"]([RIGHT], [["sat the cat"]]).name == "ROUGE-L"


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [("rogue", "rouge"), ("rouge-L", "rougeL"), ("word_error", "word_errors"), ("blue", "bleu")],
)
def test_unknown_metric_gets_a_suggestion(name, suggestion):
    message = f"`metric` must be one of 'bleu', .*but is '{name}'. Did you mean '{suggestion}'"
    with pytest.raises(ConfigError, match=message):
        pick(METRICS, name, "metric")
