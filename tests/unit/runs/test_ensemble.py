import math
import shutil
from pathlib import Path

import pytest
import torch

from regard.core.errors import CheckpointError, ConfigError
from regard.data.datasets.texts import to_lines
from regard.data.example import Example
from regard.models.ensemble import Ensemble
from regard.runs.ensemble import build_ensemble, split_folders
from regard.runs.folder import load, predict
from regard.runs.recipes import load_recipe
from regard.runs.train import train
from regard.search.settings import SearchConfig
from regard.tasks.language_modeling import LanguageModelingTask

SOURCES = ["a b c", "e d", "b a c d"]
PAIRS = [Example("a b c", "c b a"), Example("e d", "d e e"), Example("b", "b")]


@pytest.fixture(scope="module")
def other_run(reverse_files, tmp_path_factory):
    """The same model as the tiny run with another seed, trained for a few steps."""
    out = tmp_path_factory.mktemp("runs") / "other"
    return train(reverse_files.request(out, "seed=2", "train.max_steps=20"))


@pytest.fixture(scope="module")
def ensemble(tiny_run, other_run):
    return load(f"{tiny_run.folder},{other_run.folder}")


def test_ensemble_is_a_predictor_with_the_settings_of_the_first(ensemble, tiny_run, other_run):
    assert isinstance(ensemble.model, Ensemble)
    assert ensemble.recipe == tiny_run.predictor.recipe
    members = (tiny_run.predictor, other_run.predictor)
    assert ensemble.num_parameters == sum(member.num_parameters for member in members)


def test_scores_are_logs_of_mean_probabilities(ensemble, tiny_run, other_run):
    alone = [run.predictor.score(PAIRS) for run in (tiny_run, other_run)]
    for ours, one, two in zip(ensemble.score(PAIRS), *alone, strict=True):
        both = zip(one.token_log_probs, two.token_log_probs, strict=True)
        expected = [math.log((math.exp(p) + math.exp(q)) / 2) for p, q in both]
        assert ours.token_log_probs == pytest.approx(expected, abs=1e-5)
        assert one.token_log_probs != pytest.approx(two.token_log_probs, abs=1e-2)


def test_predictions_have_the_log_probability_of_their_score(ensemble):
    predictions = ensemble.predict(SOURCES, num_best=3)
    for source, best in zip(SOURCES, predictions, strict=True):
        scored = ensemble.score([Example(source, prediction.text) for prediction in best])
        for prediction, score in zip(best, scored, strict=True):
            assert prediction.log_prob == pytest.approx(score.log_prob, abs=1e-4)


def test_attention_has_the_layers_of_all_members(ensemble, tiny_run, other_run):
    alone = [run.predictor.attend(PAIRS) for run in (tiny_run, other_run)]
    for ours, one, two in zip(ensemble.attend(PAIRS), *alone, strict=True):
        assert torch.allclose(ours.weights, torch.cat([one.weights, two.weights]), atol=1e-5)
        assert torch.allclose(ours.mean(), (one.mean() + two.mean()) / 2, atol=1e-5)
        assert ours.labels == one.labels


def test_greedy_outputs_are_predicted_under_teacher_forcing(ensemble):
    outputs = ensemble.translate(SOURCES, search=SearchConfig(beams=1))
    examples = [Example(*pair) for pair in zip(SOURCES, outputs, strict=True)]
    expected = [(True,) * len(text.split()) for text in outputs]
    assert ensemble.correct_words(examples) == expected


def test_member_without_attention_adds_no_layer(tiny_run, tiny_run_without_attention):
    both = load(f"{tiny_run.folder},{tiny_run_without_attention.folder}")
    for ours, alone in zip(both.attend(PAIRS), tiny_run.predictor.attend(PAIRS), strict=True):
        assert torch.allclose(ours.weights, alone.weights, atol=1e-5)


def test_members_without_attention_have_no_attention_layers(tiny_run_without_attention, tmp_path):
    folder = tiny_run_without_attention.folder
    shutil.copytree(folder, tmp_path / "again")
    both = load(f"{folder},{tmp_path / 'again'}")
    assert [attention.weights.shape[0] for attention in both.attend(PAIRS)] == [0, 0, 0]
    assert both.translate(SOURCES) == tiny_run_without_attention.predictor.translate(SOURCES)


def test_folder_with_a_comma_in_its_name_is_one_run(tiny_run, tiny_folder):
    moved = tiny_folder.rename(tiny_folder.with_name("a,b"))
    assert split_folders(str(moved)) == [moved]
    assert predict(moved, SOURCES) == tiny_run.predictor.translate(SOURCES)


def test_spaces_around_commas_are_stripped():
    assert split_folders("runs/a, runs/b") == [Path("runs/a"), Path("runs/b")]


@pytest.mark.parametrize(("folders", "number"), [("runs/a,", 2), (",runs/a", 1), ("a,,b", 2)])
def test_folder_without_a_name_is_refused(folders, number):
    with pytest.raises(
        ConfigError,
        match=rf"^'{folders}' must be run folders joined by commas, but number {number} has no",
    ):
        load(folders)


def test_folder_given_twice_is_refused(tiny_run):
    with pytest.raises(ConfigError, match=r"reverse/ is given twice\. Name each run once\.$"):
        load(f"{tiny_run.folder},{tiny_run.folder}/")


def test_folder_that_does_not_exist_is_named(tiny_run):
    with pytest.raises(CheckpointError, match=r"^absent is not a folder\. Give a run folder"):
        load(f"{tiny_run.folder},absent")


@pytest.mark.parametrize(
    ("settings", "sides"),
    [
        (("data.source.kind=char",), "source"),
        (("data.target.kind=char",), "target"),
        (("data.source.kind=char", "data.target.kind=char"), "source and target"),
    ],
    ids=("source", "target", "both"),
)
def test_runs_with_different_vocabularies_are_refused(
    tiny_run, reverse_files, tmp_path, settings, sides
):
    train(reverse_files.request(tmp_path / "other", "train.max_steps=1", *settings))
    with pytest.raises(
        ConfigError,
        match=rf"same vocabularies, but \S+reverse and \S+other have different {sides} "
        r"vocabularies\. Train them with the same data and data settings\.$",
    ):
        load(f"{tiny_run.folder},{tmp_path / 'other'}")


def test_run_for_another_task_is_refused(tiny_run):
    overrides = ("model.dim=8", "model.num_heads=2", "model.feed_forward_dim=8", "data.window=16")
    recipe = load_recipe("gpt-laptop", overrides)
    task = LanguageModelingTask.prepare(recipe, to_lines("a b\n" * 9), device=torch.device("cpu"))
    with pytest.raises(
        ConfigError,
        match=r"needs runs for the task 'generation', but lm is one for 'language_model'\. Leave",
    ):
        build_ensemble({tiny_run.folder: tiny_run.predictor, Path("lm"): task})


def test_init_from_takes_a_single_run(tiny_run, other_run, reverse_files, tmp_path):
    start = f"{tiny_run.folder},{other_run.folder}"
    with pytest.raises(CheckpointError, match=r"other is not a folder\. Give a run folder made by"):
        train(reverse_files.request(tmp_path, f"init_from={start}"))
