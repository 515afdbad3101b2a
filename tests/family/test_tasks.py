"""Claims about every task: reports, descriptions, and single sources in place of lists."""

import shutil

import pytest

from regard.data.example import Example
from regard.runs.folder import REPORT, load
from regard.runs.report import read_evaluation, write_report
from regard.tasks.base import Attends, Autoencodes, Scores
from regard.tasks.table import TASKS
from tests.fixtures.tasks import TASK_CASES

MASKED = ("masked_language_model", "denoising")

SECTIONS = {
    "generation": {"Samples", "Attention", "BLEU by source length", "Linear probes by layer"},
    "language_model": {"Samples", "Attention"},
    "denoising": {"Samples", "Attention", "Linear probes by layer"},
    "autoencoding": {"Samples"},
    "masked_language_model": {"Samples", "Attention", "Linear probes by layer"},
    "classification": {"Samples", "Attention rollout", "Confusion of labels"},
    "segmentation": {"Samples", "Probability of each label"},
    "grounding": {"Samples", "Attention"},
    "image_to_image": {"Samples"},
}


@pytest.fixture(params=TASK_CASES)
def run(request, task_run):
    return task_run(request.param)


@pytest.fixture
def source(run):
    """A source of the task, with a mask if the task fills masks."""
    text = run.evaluation.sources[0] if run.evaluation.sources else "the dog"
    return "the <mask> dog" if run.predictor.recipe.task in MASKED else text


def test_every_task_has_a_case():
    assert TASK_CASES.keys() == TASKS.keys() == SECTIONS.keys()


def test_report_of_a_saved_run_has_every_section(run, tmp_path):
    folder = shutil.copytree(run.folder, tmp_path / "run")
    task = load(folder, "cpu")
    evaluation, examples = read_evaluation(folder, task)
    page = write_report(folder, task, evaluation, examples=examples).read_text(encoding="utf-8")
    assert (folder / REPORT).exists()
    for title in ("Training curves", "Provenance", *SECTIONS[task.recipe.task]):
        assert f"<h2>{title}</h2>" in page
    for result in run.evaluation.results.values():
        assert f"<dt>{result.name}</dt>" in page
    assert "<b>" not in page


def test_string_is_translated_to_a_string(run, source):
    single = run.predictor.translate(source)
    assert isinstance(single, str)
    assert run.predictor.translate([source]) == [single]


def test_single_source_or_example_is_refused_where_a_list_is_expected(run, source):
    task = run.predictor
    with pytest.raises(TypeError, match=r"`sources` must be a list.*\["):
        task.predict(source)
    if isinstance(task, Autoencodes):
        with pytest.raises(TypeError, match="`sources` must be a list"):
            task.encode(source)
    with pytest.raises(TypeError, match="`examples` must be a list"):
        task.evaluate(source)
    for protocol, name in ((Scores, "score"), (Attends, "attend")):
        if isinstance(task, protocol):
            with pytest.raises(TypeError, match="`examples` must be a list"):
                getattr(task, name)(Example(source))
            with pytest.raises(TypeError, match=r"`examples` must hold `regard\.Example"):
                getattr(task, name)([source])


def test_descriptions_are_short_and_escaped(run, source):
    task = run.predictor
    assert f"<{type(task).__name__}: {task.recipe.task}, " in repr(task)
    assert f"{task.num_parameters:,} parameters" in repr(task)
    assert "\n" not in repr(task)
    assert len(repr(task)) < 200
    assert f"{task.num_parameters:,} parameters" in task._repr_html_()
    (best, *_) = task.predict([source])[0]
    assert best.text[:10] in repr(best)
    assert len(repr(best)) < 200
    assert "<b>" not in best._repr_html_()
    for result in run.evaluation.results.values():
        assert str(result) in repr(run.evaluation)
        assert f">{result.name}<" in run.evaluation._repr_html_()
    assert str(run.folder) in repr(run)
    assert str(run.evaluation) in repr(run)
    assert str(run.folder) in run._repr_html_()
