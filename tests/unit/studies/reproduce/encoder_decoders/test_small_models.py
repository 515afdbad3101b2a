from types import SimpleNamespace

from regard.data.example import Example
from regard.studies.reproduce.encoder_decoders.small_models import (
    Scores,
    measure_by_length,
    sample_digits,
    tables_by_length,
)


def test_test_sequences_have_the_given_lengths_and_do_not_occur_in_training():
    data = sample_digits(500, max_length=6, num_tests=7)
    assert {length: len(examples) for length, examples in data.tests.items()} == {
        length: 7 for length in range(4, 7)
    }
    sources = set()
    for length, examples in data.tests.items():
        assert all(len(example.source.split()) == length for example in examples)
        assert all(example.source == example.target for example in examples)
        sources |= {example.source for example in examples}
    assert len(data.train) == 500
    assert not sources & {example.source for example in data.train}


def test_accuracy_is_measured_by_length():
    tests = {2: [Example("1 2", "twelve"), Example("1 3", "thirteen")], 3: [Example("1 0 0", "x")]}
    answers = {"1 2": "twelve", "1 3": "thirty", "1 0 0": "x"}
    task = SimpleNamespace(best_texts=lambda sources: [answers[source] for source in sources])
    scores = measure_by_length(task, tests)
    assert scores.exact == {2: 50, 3: 100}
    assert list(tables_by_length({"model": scores}).values())[1] == {"model": {"2": 50, "3": 100}}


def test_bleu_is_averaged_over_lengths():
    assert Scores({3: 10.0, 4: 20.0, 5: 60.0}, {}).mean_bleu(range(3, 5)) == 15
