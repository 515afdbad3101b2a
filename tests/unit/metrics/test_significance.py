import random

import pytest
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

from regard.core.errors import ConfigError, DataError
from regard.metrics.significance import PAIRED, paired_bootstrap, paired_bootstrap_of_runs
from regard.metrics.text.bleu import bleu, chrf

MEASURES = {"bleu": (bleu, BLEU), "chrf": (chrf, CHRF)}


def corrupted(sentences, share, seed):
    """Replace a share of the words of sentences."""
    generator = random.Random(seed)
    return [
        " ".join("x" if generator.random() < share else word for word in sentence.split())
        for sentence in sentences
    ]


@pytest.fixture(scope="module")
def sentences():
    generator = random.Random(1)
    words = "the a cat dog house sees has old new and in on small red".split()
    return [" ".join(generator.choices(words, k=generator.randint(5, 12))) for _ in range(60)]


@pytest.fixture(scope="module")
def references(sentences):
    return [[sentence] for sentence in sentences]


@pytest.fixture(scope="module")
def baseline(sentences):
    return corrupted(sentences, 0.30, seed=2)


@pytest.fixture(scope="module")
def slightly_better(sentences):
    return corrupted(sentences, 0.27, seed=3)


@pytest.mark.parametrize("metric", PAIRED)
def test_p_value_equals_sacrebleu(metric, sentences, references, baseline, slightly_better):
    systems = [("baseline", baseline), ("system", slightly_better)]
    theirs = PairedTest(
        systems, {metric: MEASURES[metric][1]()}, [sentences], test_type="bs", n_samples=300
    )()[1]
    (name,) = set(theirs) - {"System"}
    ours = paired_bootstrap(baseline, slightly_better, references, metric=metric, num_samples=300)
    assert ours.name == name
    assert 0.01 < ours.p_value < 0.9
    assert ours.p_value == pytest.approx(theirs[name][1].p_value, abs=0.01)


@pytest.mark.parametrize("metric", PAIRED)
def test_difference_equals_that_of_the_scores(metric, references, baseline, slightly_better):
    measure = MEASURES[metric][0]
    wanted = measure(slightly_better, references).value - measure(baseline, references).value
    found = paired_bootstrap(baseline, slightly_better, references, metric=metric, num_samples=40)
    assert found.value == pytest.approx(wanted)


def test_system_does_not_differ_from_itself(baseline, references):
    found = paired_bootstrap(baseline, baseline, references, num_samples=100)
    assert (found.value, found.p_value, found.interval) == (0.0, 1.0, (0.0, 0.0))


def test_much_better_system_is_significant(baseline, sentences, references):
    found = paired_bootstrap(baseline, sentences, references, num_samples=200)
    assert found.value > 20
    assert found.p_value < 0.01


def test_worse_system_has_a_negative_difference(baseline, sentences, references):
    better = paired_bootstrap(baseline, sentences, references, num_samples=100)
    worse = paired_bootstrap(sentences, baseline, references, num_samples=100)
    assert worse.value == -better.value
    assert worse.p_value == better.p_value


def test_interval_contains_the_difference(baseline, slightly_better, references):
    found = paired_bootstrap(baseline, slightly_better, references, num_samples=200)
    low, high = found.interval
    assert low < found.value < high


def test_seed_determines_the_resamples(baseline, slightly_better, references):
    first, again, other = (
        paired_bootstrap(baseline, slightly_better, references, num_samples=50, seed=seed)
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first.interval != other.interval


def test_sentences_may_have_different_numbers_of_references(baseline, sentences):
    references = [
        [sentence, "another one"][: 1 + row % 2] for row, sentence in enumerate(sentences)
    ]
    assert paired_bootstrap(baseline, sentences, references, num_samples=40).value > 0


def test_signature_has_samples_and_seed(baseline, references):
    found = paired_bootstrap(baseline, baseline, references, num_samples=50, seed=7)
    assert found.signature == "test:paired bootstrap|samples:50|seed:7|ties:chance"


def test_to_dict_has_all_fields(baseline, references):
    found = paired_bootstrap(baseline, baseline, references, num_samples=50)
    assert found.to_dict() == {
        "name": "BLEU",
        "value": 0.0,
        "interval": [0.0, 0.0],
        "p_value": 1.0,
        "signature": found.signature,
    }


def test_baseline_of_another_length_is_refused(baseline, references):
    with pytest.raises(DataError, match="`baseline` and `hypotheses` .* there are 59 and 60"):
        paired_bootstrap(baseline[1:], baseline, references)


def test_too_few_samples_are_refused(baseline, references):
    with pytest.raises(ConfigError, match="`num_samples` must be at least 40, but is 39"):
        paired_bootstrap(baseline, baseline, references, num_samples=39)


def test_metric_that_cannot_be_tested_is_refused(baseline, references):
    with pytest.raises(ConfigError, match="`metric` must be one of 'bleu', 'chrf', but is 'wer'"):
        paired_bootstrap(baseline, baseline, references, metric="wer")


@pytest.mark.parametrize("metric", PAIRED)
def test_difference_of_several_runs_is_their_mean(
    metric, sentences, references, baseline, slightly_better
):
    systems = [slightly_better, corrupted(sentences, 0.1, seed=4)]
    alone = [paired_bootstrap(baseline, one, references, metric=metric) for one in systems]
    found = paired_bootstrap_of_runs([baseline] * 2, systems, references, metric=metric)
    assert found.value == pytest.approx(sum(one.value for one in alone) / 2)
    low, high = found.interval
    assert min(one.interval[0] for one in alone) < low < found.value
    assert found.value < high < max(one.interval[1] for one in alone)


def test_repeating_a_run_does_not_change_significance(references, baseline, slightly_better):
    once = paired_bootstrap(baseline, slightly_better, references, num_samples=100)
    twice = paired_bootstrap_of_runs(
        [baseline] * 2, [slightly_better] * 2, references, num_samples=100
    )
    assert twice == once
