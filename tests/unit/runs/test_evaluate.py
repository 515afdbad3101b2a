import pytest

from regard.core.errors import ConfigError
from regard.runs.evaluate import evaluate_examples, read_test_data


def test_evaluation_equals_that_after_training(tiny_run, reverse_files):
    examples = read_test_data(tiny_run.predictor, (reverse_files.test,))
    evaluation = evaluate_examples(tiny_run.predictor, examples, num_bootstrap=0)
    assert evaluation.outputs == tiny_run.evaluation.outputs


def test_overrides_change_the_search(tiny_run, reverse_files):
    examples = read_test_data(tiny_run.predictor, (reverse_files.test,))[:5]
    arguments = ("search.max_ratio=0", "search.max_extra=1")
    evaluation = evaluate_examples(
        tiny_run.predictor, examples, overrides=arguments, num_bootstrap=0
    )
    assert {len(output.split()) for output in evaluation.outputs} == {1}


def test_columns_of_tasks_without_columns_are_refused(sorting_run):
    with pytest.raises(ConfigError, match="`--columns`.*'sorting'"):
        read_test_data(sorting_run, ("pairs.tsv",), columns=("source", "target"))
