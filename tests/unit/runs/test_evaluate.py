import pytest

from regard.core.errors import ConfigError
from regard.runs.evaluate import evaluate_data


def test_data_is_read_and_measured_as_after_training(tiny_run, reverse_files):
    found = evaluate_data(tiny_run.predictor, (reverse_files.test,), num_bootstrap=0)
    assert found.outputs == tiny_run.evaluation.outputs


def test_columns_of_tasks_without_columns_are_refused(sorting_run):
    with pytest.raises(ConfigError, match="`--columns` is for models that write their answer"):
        evaluate_data(sorting_run, ("pairs.tsv",), columns=("source", "target"))
