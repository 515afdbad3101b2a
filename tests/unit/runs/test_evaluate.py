import pytest

from regard.core.errors import ConfigError
from regard.runs.evaluate import evaluate_data


def test_evaluation_equals_that_after_training(tiny_run, reverse_files):
    evaluation = evaluate_data(tiny_run.predictor, (reverse_files.test,), num_bootstrap=0)
    assert evaluation.outputs == tiny_run.evaluation.outputs


def test_columns_of_tasks_without_columns_are_refused(sorting_run):
    with pytest.raises(ConfigError, match="`--columns`.*'sorting'"):
        evaluate_data(sorting_run, ("pairs.tsv",), columns=("source", "target"))
