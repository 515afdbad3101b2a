import pytest


@pytest.fixture(scope="session")
def language_task(task_run):
    """A tiny language model."""
    return task_run("language_model").predictor
