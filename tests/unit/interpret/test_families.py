"""Explanations of every task and modality that has them, and refusals of the others."""

import numpy as np
import pytest

from regard.core.errors import ConfigError
from regard.interpret.attribution import attribute
from regard.interpret.passes import force
from regard.runs.folder import load

METHODS = ("gradients", "integrated_gradients", "erasure")


def check(task, source, target=None):
    explained = attribute(task, source, methods=METHODS, target=target, is_measured=True)
    shape = len(explained.target_tokens), len(explained.source_tokens)
    for found in explained.attributions:
        assert found.source.shape == shape and np.isfinite(found.source).all()
    # Contributions to an output that depends on its source are not all zero.
    assert explained.attributions[-1].source.any()
    return explained


@pytest.mark.parametrize("name", ["generation", "denoising", "autoencoding"])
def test_tasks_that_generate_text(task_run, name):
    check(task_run(name).predictor, "the big dog sees a cat")


def test_images_as_sources(task_run):
    run = task_run("classification")
    explained = check(run.predictor, str(next(run.folder.parent.glob("*.png"))))
    rows, columns = (int(part) for part in explained.source_tokens[-1].split(","))
    assert rows * columns == len(explained.source_tokens)


@pytest.mark.parametrize("name", ["masked_language_model", "segmentation"])
def test_tasks_without_explanations(task_run, name):
    run = task_run(name)
    source = "the dog" if "masked" in name else str(next(run.folder.parent.glob("*.png")))
    with pytest.raises(ConfigError, match=f"the task of this run is '{name}'"):
        attribute(run.predictor, source)


def test_empty_source_is_refused(tiny_run):
    with pytest.raises(ConfigError, match="at least one word, but is empty"):
        force(tiny_run.predictor, "  ")


def test_empty_continuation_is_refused(task_run):
    with pytest.raises(ConfigError, match="at least one token, but is empty"):
        attribute(task_run("language_model").predictor, "the d", target="")


def test_ensemble_is_refused(tiny_run, tiny_folder):
    ensemble = load(f"{tiny_run.folder},{tiny_folder}", "cpu")
    with pytest.raises(ConfigError, match="for one model, but this is an ensemble"):
        attribute(ensemble, "a b c")
