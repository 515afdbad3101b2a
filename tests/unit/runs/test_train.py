import json
import math
from dataclasses import replace

import pytest
import torch

from regard.core.errors import CheckpointError, ConfigError, DataError
from regard.core.files import read_json
from regard.data.example import Example
from regard.runs import train as training
from regard.runs.folder import METRICS, PREDICTIONS, WEIGHTS, load_untrained, predict
from regard.runs.lock import LOCK
from regard.runs.request import Request
from regard.runs.train import train
from regard.training.checkpoint import read_weights
from regard.training.loop import Trainer

EXAMPLES = [Example("a b c", "c b a"), Example("d e", "e d")]
DROPOUT = ("model.encoder.dropout=0.3", "model.decoder.dropout=0.3", "train.max_epochs=3")


def assert_same_weights(ours, theirs):
    first, second = read_weights(ours), read_weights(theirs)
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), name


@pytest.fixture(scope="module")
def uninterrupted(reverse_files, tmp_path_factory):
    """An uninterrupted run with dropout."""
    out = tmp_path_factory.mktemp("runs") / "uninterrupted"
    return train(reverse_files.request(out, *DROPOUT, "train.validate_every=8"))


@pytest.fixture(scope="module")
def resumed(reverse_files, interrupted_at, tmp_path_factory):
    """The same, interrupted twice in the middle of an epoch."""
    out = tmp_path_factory.mktemp("runs") / "resumed"
    request = reverse_files.request(out, *DROPOUT, "train.validate_every=8")
    first = train(request, display=interrupted_at(4))
    assert (first.summary.stopped, first.summary.progress.step) == ("interrupted", 4)
    again = replace(request, is_resumed=True, recipe=None, settings=())
    second = train(again, display=interrupted_at(17))
    assert (second.summary.stopped, second.summary.progress.step) == ("interrupted", 17)
    return train(again)


@pytest.mark.parametrize("subfolder", [".", "resume"])
def test_resumed_weights_equal_those_of_an_uninterrupted_run(uninterrupted, resumed, subfolder):
    ours, theirs = (run.folder / subfolder / WEIGHTS for run in (resumed, uninterrupted))
    assert_same_weights(ours, theirs)


def test_resumed_run_predicts_like_an_uninterrupted_one(uninterrupted, resumed):
    assert resumed.evaluation.outputs == uninterrupted.evaluation.outputs
    assert resumed.summary.progress.step == uninterrupted.summary.progress.step


def test_interrupted_run_predicts_without_being_evaluated(reverse_files, interrupted_at, tmp_path):
    trained = train(reverse_files.request(tmp_path), display=interrupted_at(2))
    assert trained.evaluation is None
    assert not (tmp_path / METRICS).exists()
    assert len(predict(tmp_path, ["a b c"])) == 1


def test_same_seed_gives_the_same_weights_and_another_seed_others(reverse_files, tmp_path):
    for name, seed in (("first", 1), ("again", 1), ("other", 2)):
        settings = (*DROPOUT, "train.max_steps=2", f"seed={seed}")
        train(reverse_files.request(tmp_path / name, *settings))
    first, again, other = (
        read_weights(tmp_path / name / WEIGHTS) for name in ("first", "again", "other")
    )
    assert all(torch.equal(tensor, again[name]) for name, tensor in first.items())
    assert not any(torch.equal(tensor, other[name]) for name, tensor in first.items())


def test_resuming_on_other_data_is_refused(reverse_files, tiny_folder):
    request = reverse_files.request(tiny_folder, is_resumed=True)
    with pytest.raises(
        CheckpointError,
        match=r"was trained on other data than copy:50\.",
    ):
        train(replace(request, data=("copy:50",), recipe=None, settings=()))


def test_finished_run_can_be_trained_further(reverse_files, tiny_run, tiny_folder):
    settings = ("train.max_epochs=11",)
    request = reverse_files.request(tiny_folder, is_resumed=True)
    trained = train(replace(request, recipe=None, settings=settings))
    assert trained.summary.progress.epoch == 11
    assert trained.summary.progress.step > tiny_run.summary.progress.step


def test_forced_run_replaces_the_one_before(reverse_files, tiny_folder):
    train(reverse_files.request(tiny_folder, "train.max_steps=2", is_forced=True))
    assert read_json(tiny_folder / METRICS)["training"]["steps"] == 2


def test_metrics_file_holds_scores_and_training_summary(tiny_run):
    metrics = read_json(tiny_run.folder / METRICS)
    measured = tiny_run.evaluation.results["bleu"]
    assert metrics["test"]["scores"]["bleu"]["value"] == measured.value
    assert metrics["training"]["steps"] == tiny_run.summary.progress.step
    assert metrics["parameters"] == tiny_run.predictor.num_parameters
    assert read_json(tiny_run.folder / PREDICTIONS) == tiny_run.evaluation.outputs


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        (
            ("data.is_joint=true", "model.ties=all", "model.encoder.embedding_dim=7"),
            ConfigError,
            "one embedding width",
        ),
        (("data.batch.max_length=3",), DataError, "Every one of the 300 pairs has a side of over"),
        (("train.max_stpes=3",), ConfigError, "Did you mean 'max_steps'"),
    ],
)
def test_failed_start_writes_no_folder(reverse_files, tmp_path, settings, error, message):
    with pytest.raises(error, match=message):
        train(reverse_files.request(tmp_path / "run", *settings))
    assert not (tmp_path / "run").exists()


def test_joint_tokenizer_is_shared(reverse_files, tmp_path):
    settings = ("data.is_joint=true", "train.max_steps=1")
    predictor = train(reverse_files.request(tmp_path, *settings)).predictor
    assert predictor.source.tokenizer is predictor.target.tokenizer


@pytest.fixture
def fresh(tiny_run):
    """The tiny run as it was before training, but without dropout."""
    predictor = load_untrained(tiny_run.folder, torch.device("cpu"))
    for module in predictor.model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return predictor


def loss_with(predictor, **changes):
    training = replace(predictor.recipe.train, **changes)
    predictor.recipe = replace(predictor.recipe, train=training)
    return predictor.loss


def test_label_smoothing_applies_in_training_only(fresh):
    (batch,) = fresh.batches(EXAMPLES)
    loss = loss_with(fresh, label_smoothing=0.5)
    assert torch.equal(loss(batch).total.detach(), loss(batch).nll)
    fresh.model.train()
    assert not torch.equal(loss(batch).total.detach(), loss(batch).nll)


def test_scheduled_sampling_applies_in_training_only(fresh):
    (batch,) = fresh.batches(EXAMPLES)
    forced = loss_with(fresh)(batch).nll
    sampled = loss_with(fresh, teacher_forcing=0.0)
    assert torch.allclose(sampled(batch).nll, forced)
    fresh.model.train()
    assert not torch.allclose(sampled(batch).nll, forced)


@pytest.mark.parametrize(
    ("metric", "sign"), [("bleu", 1), ("loss", -1), ("cer", -1), ("perplexity", -1)]
)
def test_validation_metric_and_its_sign(fresh, metric, sign):
    validation = replace(fresh.recipe.validation, metric=metric)
    fresh.recipe = replace(fresh.recipe, validation=validation)
    result = fresh.validation(EXAMPLES)()
    assert set(result.metrics) == {"loss", metric}
    assert result.value == sign * result.metrics[metric]


def test_perplexity_is_computed_from_the_loss_without_predictions(fresh, monkeypatch):
    validation = replace(fresh.recipe.validation, metric="perplexity")
    fresh.recipe = replace(fresh.recipe, validation=validation)
    monkeypatch.setattr(fresh, "predict", None)
    numbers = fresh.validation(EXAMPLES)().metrics
    assert numbers["perplexity"] == pytest.approx(math.exp(numbers["loss"]))


def test_resuming_with_another_model_is_refused(reverse_files, interrupted_at, tmp_path):
    request = reverse_files.request(tmp_path)
    train(request, display=interrupted_at(2))
    again = replace(request, is_resumed=True, recipe=None, settings=("model.encoder.dropout=0.9",))
    with pytest.raises(ConfigError, match="^`model` cannot change when a run is resumed; only"):
        train(again)


def test_data_in_place_of_a_request_is_refused():
    with pytest.raises(TypeError, match=r"`regard.Request\(data=…\)`, but is 'reverse'"):
        train("reverse")


def test_source_that_is_no_text_is_refused(tiny_run):
    with pytest.raises(TypeError, match="a text or a list of texts, but is 5 .int."):
        tiny_run.predictor.translate(5)


class KilledError(Exception):
    """Ends a training without saving anything."""


def train_killed(request, monkeypatch, *, method):
    """Train until a method of the trainer is called, which ends the process."""

    def kill(*_):
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, method, kill)
        with pytest.raises(KilledError):
            train(request)


def test_run_that_was_killed_before_its_first_checkpoint_starts_anew(
    reverse_files, tmp_path, monkeypatch, caplog
):
    caplog.set_level("INFO", "regard")
    settings = (*DROPOUT, "train.max_steps=4", "seed=3")
    request = reverse_files.request(tmp_path / "killed", *settings)
    train_killed(request, monkeypatch, method="run")
    resumed = train(replace(request, is_resumed=True, recipe=None, settings=()))
    assert "killed was stopped before its first checkpoint. Training starts anew." in caplog.text
    whole = train(reverse_files.request(tmp_path / "whole", *settings))
    assert_same_weights(resumed.folder / WEIGHTS, whole.folder / WEIGHTS)
    about = [read_json(run.folder / "config.json")["about"]["recipe"] for run in (resumed, whole)]
    assert about == ["bahdanau2015-laptop"] * 2


def test_run_that_was_killed_before_it_wrote_its_settings_starts_anew(
    reverse_files, tmp_path, caplog
):
    caplog.set_level("INFO", "regard")
    request = reverse_files.request(tmp_path / "killed", "train.max_steps=2")
    request.out.mkdir()
    with pytest.raises(CheckpointError, match="holds no run to resume"):
        train(replace(request, is_resumed=True))
    (request.out / LOCK).write_text("{}")  # left by a training that was killed as it read the data
    result = train(replace(request, is_resumed=True))
    assert result.summary.progress.step == 2 and not (request.out / LOCK).exists()
    assert "killed was stopped before its settings were written. Training starts" in caplog.text


def test_run_that_was_killed_in_its_first_steps_is_resumed(
    reverse_files, tmp_path, monkeypatch, caplog
):
    settings = (*DROPOUT, "train.max_steps=4")
    request = reverse_files.request(tmp_path / "killed", *settings)
    train_killed(request, monkeypatch, method="_validate")
    resumed = train(replace(request, is_resumed=True, recipe=None, settings=()))
    assert not [record for record in caplog.records if record.levelname == "WARNING"]
    whole = train(reverse_files.request(tmp_path / "whole", *settings))
    assert_same_weights(resumed.folder / WEIGHTS, whole.folder / WEIGHTS)


def test_changed_settings_of_a_resumed_run_are_recorded(reverse_files, interrupted_at, tmp_path):
    request = reverse_files.request(tmp_path)
    train(request, display=interrupted_at(4))
    again = replace(request, is_resumed=True, recipe=None)
    train(replace(again, settings=()), display=interrupted_at(8))
    assert "changes" not in read_json(tmp_path / "config.json")["about"]
    faster = ("train.optimizer.learning_rate=0.01", "train.max_epochs=12")
    train(replace(again, settings=faster), display=interrupted_at(12))
    train(replace(again, settings=("train.max_epochs=1",)))
    config = read_json(tmp_path / "config.json")
    assert config["recipe"]["train"]["max_epochs"] == 1
    assert config["recipe"]["train"]["optimizer"]["learning_rate"] == 0.01
    first, second = config["about"]["changes"]
    assert (first["step"], second["step"]) == (8, 12)
    assert first["settings"] == {
        "train.max_epochs": [10, 12],
        "train.optimizer.learning_rate": [0.03, 0.01],
    }
    assert second["settings"] == {"train.max_epochs": [12, 1]}


def test_changed_validation_metric_resets_the_best_score(
    reverse_files, interrupted_at, tmp_path, caplog
):
    settings = ("train.validate_every=4", "train.max_steps=8", "validation.metric=bleu")
    request = reverse_files.request(tmp_path, *settings)
    train(request, display=interrupted_at(6))
    # The value of a loss is negative, and so below any BLEU.
    again = replace(request, is_resumed=True, recipe=None, settings=("validation.metric=loss",))
    summary = train(again).summary
    assert summary.progress.best_step == 8
    assert "metric was bleu and is loss now. The best score so far, of step 4, is" in caplog.text


def test_a_restarted_launch_resumes_only_its_own_run(tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text(
        json.dumps({"format": 2, "recipe": {}, "about": {"launch": "mine"}})
    )
    monkeypatch.setattr(training, "prepare_to_resume", lambda folder: None)
    request = Request(data="pairs.tsv", out=tmp_path, settings=("train.max_steps=1",))
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "mine")
    resumed = training._check_folder(request, is_restarted=True, is_left=False)
    assert resumed.is_resumed and not resumed.settings
    with pytest.raises(ConfigError, match="already holds a run"):
        training._check_folder(request, is_restarted=False, is_left=False)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "other")
    with pytest.raises(ConfigError, match="already holds a run"):
        training._check_folder(request, is_restarted=True, is_left=False)
